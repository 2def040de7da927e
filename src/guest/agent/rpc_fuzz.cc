// SPDX-License-Identifier: Apache-2.0
// Connect streams: frames that arrive in any pieces, compressed ones, and how a stream ends.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <boost/json/parse.hpp>
#include <fuzzer/FuzzedDataProvider.h>

#include "base/error_table.h"
#include "guest/agent/gzip.h"
#include "guest/agent/paths.h"
#include "guest/agent/rpc.h"

namespace {

using namespace gb::agent;
using gb::http::EnvelopeReader;

constexpr std::size_t kLimit = 300;  // bytes a frame, packed or not

struct Reading {
    std::string frames;    // the frames that came out, written down again
    bool refused = false;  // behind them stands one that is too large
    bool empty = true;
};

// `cuts`: lengths of the pieces, over and over.
Reading read(std::string_view stream, std::string_view cuts) {
    EnvelopeReader reader(kLimit);
    Reading out;
    for (std::size_t i = 0; !stream.empty(); ++i) {
        const std::size_t piece =
            cuts.empty() ? stream.size() : 1U + static_cast<unsigned char>(cuts[i % cuts.size()]);
        reader.feed(stream.substr(0, piece));
        stream.remove_prefix(std::min(stream.size(), piece));
        for (;;) {
            const auto frame = reader.next();
            if (out.refused && frame) std::abort();  // more bytes make nothing good again
            out.refused = !frame;
            if (!frame || !*frame) break;
            out.frames += gb::http::envelope((*frame)->flags, (*frame)->payload);
        }
    }
    out.empty = reader.empty();
    return out;
}

void check_framing(std::string_view stream, std::string_view cuts) {
    const Reading whole = read(stream, {});
    const Reading pieces = read(stream, cuts);
    if (whole.frames != pieces.frames || whole.refused != pieces.refused) std::abort();
    if (whole.empty != pieces.empty) std::abort();
    // The frames are the beginning of the stream; behind them is no whole frame of an allowed length.
    if (!stream.starts_with(whole.frames)) std::abort();
    stream.remove_prefix(whole.frames.size());
    if (whole.empty != stream.empty()) std::abort();
    std::size_t length = 0;
    for (std::size_t i = 1; i < 5 && stream.size() >= 5; ++i)
        length = length * 256 + static_cast<unsigned char>(stream[i]);
    if (whole.refused != (length > kLimit)) std::abort();
    if (!whole.refused && stream.size() >= 5 && stream.size() - 5 >= length) std::abort();
}

gb::Result<std::string> gunzip_in_pieces(std::string_view data, std::string_view cuts) {
    std::string out;
    Inflater inflater;
    const DataSink sink = [&](std::string_view piece) -> gb::Status {
        if (piece.empty() || piece.size() > 65536) std::abort();
        out.append(piece);
        return {};
    };
    for (std::size_t i = 0; !data.empty() && !cuts.empty(); ++i) {
        const std::size_t piece = static_cast<unsigned char>(cuts[i % cuts.size()]) + 1U;
        GB_TRY(inflater.feed(data.substr(0, piece), sink));
        data.remove_prefix(std::min(data.size(), piece));
    }
    GB_TRY(inflater.feed(data, sink));
    GB_TRY(inflater.finish());
    return out;
}

void check_compressed(const std::string& packed, std::uint8_t flags, std::string_view cuts) {
    const auto text = gunzip(packed, kLimit);
    if (text && text->size() > kLimit) std::abort();
    if (const auto pieces = gunzip_in_pieces(packed, cuts);
        text ? pieces != *text : pieces && pieces->size() <= kLimit)
        std::abort();

    const auto unpack = [&](std::uint8_t with, std::string_view coding) {
        return unpack_frame({with, packed}, coding, kLimit);
    };
    if (unpack(0, "gzip") != packed) std::abort();
    if (unpack(gb::http::kEnvelopeCompressed, "br")) std::abort();
    if (flags > 1 && unpack(flags, "gzip")) std::abort();
    const auto frame = unpack(gb::http::kEnvelopeCompressed, "gzip");
    if (packed.empty() ? frame != "" : frame.has_value() != text.has_value()) std::abort();
    if (frame && text && *frame != *text) std::abort();
}

// There and back. Cut short it is refused; with another byte it is refused, or that byte says nothing.
void check_packing(const std::string& text, std::size_t place, char damage) {
    std::string packed = gzip(text);
    if (gunzip(packed, text.size()) != text) std::abort();
    if (!text.empty() && gunzip(packed, text.size() - 1).error().code != gb::ErrorCode::too_large)
        std::abort();
    place %= packed.size();
    if (gunzip(packed.substr(0, place), text.size())) std::abort();
    packed[place] = damage;
    if (const auto other = gunzip(packed, text.size()); other && *other != text) std::abort();
}

void check_end(gb::ErrorCode code, const std::string& message) {
    EnvelopeReader reader(std::string::npos);
    reader.feed(gb::http::end_stream(gb::Error(code, message)));
    const auto frame = reader.next();
    if (!frame || !*frame || !reader.empty() || (*frame)->flags != gb::http::kEnvelopeEndStream) std::abort();
    boost::json::error_code ec;
    const boost::json::value end = boost::json::parse((*frame)->payload, ec);
    if (ec || end.at("error").at("code").as_string() != gb::connect_name(code)) std::abort();
    if (end.at("error").at("message").as_string() != to_utf8(message)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    FuzzedDataProvider input(data, size);
    const std::string cuts = input.ConsumeRandomLengthString(8);
    const auto place = input.ConsumeIntegral<std::uint8_t>();
    const char damage = input.ConsumeIntegral<char>();
    // Frames that fit and some that do not, then bytes as they come.
    std::string stream;
    while (input.ConsumeBool())
        stream += gb::http::envelope(input.ConsumeIntegral<std::uint8_t>(),
                                     input.ConsumeRandomLengthString(kLimit + 1));
    const std::string text = input.ConsumeRemainingBytesAsString();
    check_framing(stream + text, cuts);
    check_framing(text, cuts);
    check_compressed(text, place, cuts);
    check_compressed(gzip(text), place, cuts);
    check_packing(text, place, damage);
    check_end(gb::ErrorCode::not_found, text);
    return 0;
}
