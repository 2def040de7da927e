// Everything pure that reads what a client sends: header values, signatures, paths.
#include <cstdint>
#include <cstdlib>

#include "guest/agent/http_values.h"
#include "guest/agent/init_request.h"
#include "guest/agent/machine.h"
#include "guest/agent/metrics.h"
#include "guest/agent/paths.h"
#include "guest/agent/signature.h"
#include "guest/agent/system_setup.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace gb::agent;
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::string half = text.substr(0, size / 2);
    if (const auto path = resolve_path(text, "/home/user", half)) {
        if (!path->starts_with('/') || clean_path(*path) != *path) std::abort();
        if (path->find("/../") != std::string::npos || path->ends_with("/..")) std::abort();
        if (*path != "/" && clean_path(join_path(parent_path(*path), base_name(*path))) != *path)
            std::abort();
    }
    if (to_utf8(to_utf8(text)) != to_utf8(text)) std::abort();
    (void)check_signature({half, half, &text, &half}, FileOperation::write, half, 5);
    (void)basic_user(text);
    (void)form_file_name(parse_header_value(text));
    (void)content_disposition(text);
    if (const auto range = parse_range("bytes=" + text, 1000); range && *range)
        if ((*range)->first > (*range)->last || (*range)->last >= 1000) std::abort();
    (void)accepts_coding(text, "gzip");
    (void)parse_http_date(text);
    (void)metadata_headers({{"X-Metadata-" + half, text}});
    (void)parse_init_request(text);
    (void)parse_network_plan(text);
    (void)parse_cpu_times(text);
    (void)parse_memory(text);
    (void)with_host_line(text, "name");
    return 0;
}
