// SPDX-License-Identifier: Apache-2.0
#include "node/manifest.h"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace gb {
namespace json = boost::json;
namespace {

constexpr int kManifestFormat = 1;

json::object write_processor(const engine::Processor& p) {
    return {{"vendor", p.vendor}, {"family", p.family}, {"model", p.model}, {"name", p.name},
            {"flags", json::array(p.flags.begin(), p.flags.end())}};
}

}  // namespace

std::string write_manifest(const Manifest& m) {
    json::object env;
    for (const auto& [name, value] : m.env) env[name] = value;
    json::object out{{"format", kManifestFormat},
                                        {"id", m.info.id},
                                        {"name", m.info.name},
                                        {"build_id", m.info.build_id},
                                        {"cpu_count", m.info.cpu_count},
                                        {"memory_mib", m.info.memory_mib},
                                        {"disk_mib", m.info.disk_mib},
                                        {"created_ms", m.info.created_ms},
                                        {"key", m.key},
                                        {"vmm_id", m.vmm_id},
                                        {"vmm_version", m.vmm_version},
                                        {"accelerator", engine::accelerator_name(m.accelerator)},
                                        {"accelerator_reason", m.accelerator_reason},
                                        {"guest_kernel", m.guest_kernel},
                                        {"command_line", m.command_line},
                                        {"start_cmd", m.start_cmd},
                                        {"default_user", m.default_user},
                                        {"workdir", m.workdir},
                                        {"env", std::move(env)}};
    if (m.processor) out["processor"] = write_processor(*m.processor);
    if (m.tsc_khz != 0) out["tsc_khz"] = m.tsc_khz;
    if (m.imported_ms != 0) out["imported_ms"] = m.imported_ms;
    if (m.boots) out["boots"] = true;
    if (!m.image_build.empty()) out["image_build"] = m.image_build;
    if (m.saved)
        out["saved"] = json::object{{"state_bytes", m.saved->state_bytes},
                                    {"state_sha256", m.saved->state_sha256},
                                    {"memory_bytes", m.saved->memory_bytes},
                                    {"memory_checksum", m.saved->memory_checksum}};
    return json::serialize(out) + "\n";
}

Result<Manifest> parse_manifest(std::string_view text) {
    boost::system::error_code ec;
    json::value value = json::parse(json::string_view(text.data(), text.size()), ec);
    if (ec || !value.is_object()) return fail(ErrorCode::data_loss, "the manifest is not a JSON object");
    const json::object& o = value.get_object();
    if (const json::value* format = o.if_contains("format"); format == nullptr || *format != kManifestFormat)
        return fail(ErrorCode::failed_precondition, "the manifest is of another version; prepare the template again");
    std::string missing;
    const json::object* from = &o;
    auto text_of = [&](const char* name) -> std::string {
        const json::value* v = from->if_contains(name);
        if (v != nullptr && v->is_string()) return std::string(v->get_string());
        missing = name;
        return {};
    };
    auto number_of = [&](const char* name) -> std::int64_t {
        const json::value* v = from->if_contains(name);
        if (v != nullptr && v->is_int64()) return v->get_int64();
        missing = name;
        return 0;
    };
    Manifest m;
    m.info.id = text_of("id");
    m.info.name = text_of("name");
    m.info.build_id = text_of("build_id");
    m.info.cpu_count = static_cast<int>(number_of("cpu_count"));
    m.info.memory_mib = static_cast<int>(number_of("memory_mib"));
    m.info.disk_mib = static_cast<int>(number_of("disk_mib"));
    m.info.created_ms = number_of("created_ms");
    m.key = text_of("key");
    m.vmm_id = text_of("vmm_id");
    m.vmm_version = text_of("vmm_version");
    m.accelerator = text_of("accelerator") == "kvm" ? engine::Accelerator::kvm : engine::Accelerator::tcg;
    m.accelerator_reason = text_of("accelerator_reason");
    m.guest_kernel = text_of("guest_kernel");
    m.command_line = text_of("command_line");
    m.default_user = text_of("default_user");
    m.workdir = text_of("workdir");
    // Builds of older versions do not say.
    if (const json::value* start = o.if_contains("start_cmd"); start != nullptr && start->is_string())
        m.start_cmd = start->get_string();
    if (const json::value* env = o.if_contains("env"); env != nullptr && env->is_object())
        for (const auto& item : env->get_object())
            if (item.value().is_string()) m.env.emplace(item.key(), item.value().get_string());
    if (const json::value* image = o.if_contains("image_build"); image != nullptr && image->is_string())
        m.image_build = image->get_string();
    if (o.contains("tsc_khz")) m.tsc_khz = static_cast<unsigned>(number_of("tsc_khz"));
    if (o.contains("imported_ms")) m.imported_ms = number_of("imported_ms");
    if (const json::value* boots = o.if_contains("boots"); boots != nullptr) m.boots = *boots == true;
    if (const json::value* saved = o.if_contains("saved"); saved != nullptr && saved->is_object()) {
        from = &saved->get_object();
        m.saved = SavedMemory{static_cast<std::uint64_t>(number_of("state_bytes")), text_of("state_sha256"),
                              static_cast<std::uint64_t>(number_of("memory_bytes")),
                              static_cast<std::uint32_t>(number_of("memory_checksum"))};
    }
    if (const json::value* processor = o.if_contains("processor"); processor != nullptr && processor->is_object()) {
        from = &processor->get_object();
        m.processor = engine::Processor{text_of("vendor"), static_cast<int>(number_of("family")),
                                        static_cast<int>(number_of("model")), text_of("name"), {}};
        if (const json::value* flags = from->if_contains("flags"); flags != nullptr && flags->is_array())
            for (const json::value& flag : flags->get_array())
                if (flag.is_string()) m.processor->flags.emplace_back(flag.get_string());
    }
    if (!missing.empty()) return fail(ErrorCode::data_loss, fmt::format("the manifest lacks '{}'", missing));
    return m;
}

}  // namespace gb
