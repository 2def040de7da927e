// SPDX-License-Identifier: Apache-2.0
#include "http/message.h"

#include <algorithm>
#include <array>

#include <boost/url/parse.hpp>
#include <fmt/format.h>

namespace gb::http {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A head that is written must stay one head: no name or value may end a line.
std::string one_line(std::string_view text) {
    std::string out(text);
    std::erase_if(out, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
    return out;
}

void write_headers(std::string& out, const Headers& headers) {
    for (const auto& [name, value] : headers.items()) {
        out += one_line(name);
        out += ": ";
        out += one_line(value);
        out += "\r\n";
    }
    out += "\r\n";
}

}  // namespace

bool iequals(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

void Headers::set(std::string_view name, std::string value) {
    remove(name);
    add(std::string(name), std::move(value));
}

void Headers::remove(std::string_view name) {
    std::erase_if(items_, [&](const Item& item) { return iequals(item.first, name); });
}

const std::string* Headers::find(std::string_view name) const {
    for (const Item& item : items_)
        if (iequals(item.first, name)) return &item.second;
    return nullptr;
}

std::string_view Headers::get(std::string_view name) const {
    const std::string* value = find(name);
    return value != nullptr ? std::string_view(*value) : std::string_view();
}

bool Headers::lists(std::string_view name, std::string_view token) const {
    for (const auto& [key, value] : items_) {
        if (!iequals(key, name)) continue;
        std::string_view rest = value;
        while (!rest.empty()) {
            std::size_t comma = rest.find(',');
            std::string_view part = rest.substr(0, comma);
            while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
            while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
            if (iequals(part, token)) return true;
            rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        }
    }
    return false;
}

const std::string* Target::find(std::string_view name) const {
    for (const auto& [key, value] : query)
        if (key == name) return &value;
    return nullptr;
}

std::string Target::get(std::string_view name) const {
    const std::string* value = find(name);
    return value != nullptr ? *value : std::string();
}

std::vector<std::string> Target::segments() const {
    std::vector<std::string> out;
    std::string_view rest = raw_path;
    while (!rest.empty()) {
        std::size_t slash = rest.find('/');
        std::string_view part = rest.substr(0, slash);
        if (!part.empty()) out.push_back(percent_decode(part, false).value_or(std::string(part)));
        rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    }
    return out;
}

Result<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) return fail(ErrorCode::invalid_argument, "bad percent-encoding in URL");
            out.push_back(static_cast<char>(high * 16 + low));
            i += 2;
        } else {
            out.push_back(plus_is_blank && text[i] == '+' ? ' ' : text[i]);
        }
    }
    return out;
}

std::string percent_encode(std::string_view text) {
    std::string out;
    for (char c : text) {
        auto byte = static_cast<unsigned char>(c);
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '.' || c == '_' || c == '~';
        if (plain)
            out.push_back(c);
        else
            out += fmt::format("%{:02X}", byte);
    }
    return out;
}

Result<Target> parse_target(std::string_view target) {
    // Boost.URL decides what is well formed; taking apart is by the two delimiters, which it has then checked.
    std::string origin_form;
    auto parsed = boost::urls::parse_uri_reference(boost::core::string_view(target.data(), target.size()));
    if (!parsed) {
        // Clients put raw UTF-8 and brackets into query strings; every server accepts them. Control bytes stay out.
        for (char c : target)
            if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f)
                return fail(ErrorCode::invalid_argument, "malformed request target");
    } else if (parsed->has_scheme()) {
        // absolute-form (RFC 9112 3.2.2): only path and query count here
        origin_form = parsed->encoded_target();
        if (parsed->encoded_path().empty()) origin_form.insert(0, "/");
        target = origin_form;
    }
    target = target.substr(0, target.find('#'));
    std::size_t mark = target.find('?');
    Target out;
    out.raw_target = std::string(target);
    out.raw_path = std::string(target.substr(0, mark));
    if (out.raw_path.empty() || out.raw_path[0] != '/')
        return fail(ErrorCode::invalid_argument, "request target must start with '/'");
    GB_TRY_ASSIGN(out.path, percent_decode(out.raw_path, false));
    std::string_view query = mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
    while (!query.empty()) {
        std::size_t amp = query.find('&');
        std::string_view pair = query.substr(0, amp);
        query = amp == std::string_view::npos ? std::string_view() : query.substr(amp + 1);
        if (pair.empty()) continue;
        std::size_t equals = pair.find('=');
        GB_TRY_ASSIGN(std::string key, percent_decode(pair.substr(0, equals), true));
        std::string value;
        if (equals != std::string_view::npos) {
            GB_TRY_ASSIGN(value, percent_decode(pair.substr(equals + 1), true));
        }
        out.query.emplace_back(std::move(key), std::move(value));
    }
    return out;
}

std::string_view status_text(int status) {
    switch (status) {
        case 100: return "Continue";
        case 101: return "Switching Protocols";
        case 200: return "OK";
        case 201: return "Created";
        case 202: return "Accepted";
        case 204: return "No Content";
        case 206: return "Partial Content";
        case 301: return "Moved Permanently";
        case 302: return "Found";
        case 304: return "Not Modified";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 406: return "Not Acceptable";
        case 408: return "Request Timeout";
        case 409: return "Conflict";
        case 410: return "Gone";
        case 413: return "Content Too Large";
        case 415: return "Unsupported Media Type";
        case 416: return "Range Not Satisfiable";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 499: return "Client Closed Request";
        case 500: return "Internal Server Error";
        case 501: return "Not Implemented";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        case 507: return "Insufficient Storage";
        default: return "Status";
    }
}

std::string write_head(const RequestHead& head) {
    std::string out = fmt::format("{} {} HTTP/1.1\r\n", one_line(head.method), one_line(head.target));
    write_headers(out, head.headers);
    return out;
}

std::string write_head(const ResponseHead& head) {
    std::string out = fmt::format("HTTP/1.1 {} {}\r\n", head.status, status_text(head.status));
    write_headers(out, head.headers);
    return out;
}

}  // namespace gb::http
