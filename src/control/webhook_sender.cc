// SPDX-License-Identifier: Apache-2.0
#include "control/webhook_sender.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include <netinet/in.h>
#include <sys/socket.h>

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>

#include "control/events.h"
#include "control/public_address.h"

namespace gb {
namespace {

namespace ip = boost::asio::ip;
constexpr std::size_t kMostAnswer = 65536;  // bytes of a body that are waited for

struct Transfer {
    const WebhookSenderOptions& options;
    const std::atomic<bool>& stopping;
    std::size_t received = 0;
    bool refused_address = false;
};

std::optional<ip::address> address_of(const curl_sockaddr& where) {
    if (where.family == AF_INET && where.addrlen >= sizeof(sockaddr_in)) {
        sockaddr_in v4{};
        std::memcpy(&v4, &where.addr, sizeof v4);
        return ip::address_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (where.family == AF_INET6 && where.addrlen >= sizeof(sockaddr_in6)) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &where.addr, sizeof v6);
        ip::address_v6::bytes_type bytes;
        std::memcpy(bytes.data(), v6.sin6_addr.s6_addr, bytes.size());
        return ip::address_v6(bytes);
    }
    return std::nullopt;
}

curl_socket_t open_socket(void* user, curlsocktype, curl_sockaddr* where) {
    auto& transfer = *static_cast<Transfer*>(user);
    const auto address = address_of(*where);
    if (!address || (!transfer.options.allow_private && !is_public_address(*address))) {
        transfer.refused_address = true;
        return CURL_SOCKET_BAD;
    }
    return ::socket(where->family, where->socktype | SOCK_CLOEXEC, where->protocol);
}

std::size_t discard(char*, std::size_t size, std::size_t count, void* user) {
    auto& transfer = *static_cast<Transfer*>(user);
    transfer.received += size * count;
    return transfer.received <= kMostAnswer ? size * count : 0;  // 0 ends the transfer
}

int progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(user)->stopping ? 1 : 0;
}

struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
using List = std::unique_ptr<curl_slist, FreeList>;

List headers_of(const Delivery& delivery, const std::string& body) {
    List out;
    for (const std::string& line :
         {std::string("Content-Type: application/json"), "e2b-webhook-id: " + delivery.webhook.id,
          "e2b-delivery-id: " + delivery.id, std::string("e2b-signature-version: v1"),
          "e2b-signature: " + webhook_signature(delivery.webhook.secret, body),
          std::string("Expect:")}) {  // curl's own waiting for a 100 is switched off
        curl_slist* longer = curl_slist_append(out.get(), line.c_str());
        if (longer == nullptr) return nullptr;
        (void)out.release();
        out.reset(longer);
    }
    return out;
}

// Every option counts: one that this libcurl does not know would leave a door open.
bool set_up(CURL* easy, const Delivery& delivery, const std::string& body, curl_slist* headers,
            Transfer& transfer) {
    const WebhookSenderOptions& options = transfer.options;
    bool good = true;
    auto set = [&](CURLoption option, auto value) {
        good = good && curl_easy_setopt(easy, option, value) == CURLE_OK;
    };
    set(CURLOPT_URL, delivery.webhook.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_PROXY, "");
    set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_USERAGENT, "glovebox-webhooks/1");
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_POSTFIELDS, body.c_str());
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);  // a resolver that hangs is not waited for beyond the limits
    set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
    set(CURLOPT_OPENSOCKETDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &discard);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &progress);
    set(CURLOPT_XFERINFODATA, &transfer);
    return good;
}

}  // namespace

WebhookSender::WebhookSender(WebhookSenderOptions options) : options_(std::move(options)) {
    static std::once_flag once;  // libcurl's own rule: before its first use
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

Attempt WebhookSender::send(const Delivery& delivery) const {
    const std::string body = event_json(delivery.event);
    Transfer transfer{options_, stopping_};
    List headers = headers_of(delivery, body);
    Easy easy(curl_easy_init());
    if (stopping_) return {.result = Attempt::Result::stopped};
    if (!easy || !headers || !set_up(easy.get(), delivery, body, headers.get(), transfer))
        return {.reason = "the request could not be made"};
    const CURLcode code = curl_easy_perform(easy.get());
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_ABORTED_BY_CALLBACK && status / 100 != 2) return {.result = Attempt::Result::stopped};
    Attempt out{.status = static_cast<int>(status)};
    if (status / 100 == 2)  // the receiver has said so, whatever becomes of the rest of its answer
        out.result = Attempt::Result::delivered;
    else if (status / 100 > 2)
        out.reason = fmt::format("the receiver answered {}", status);
    else if (transfer.refused_address)
        out.reason = "the name leads to an address that is not public";
    else
        out.reason = curl_easy_strerror(code);
    return out;
}

}  // namespace gb
