#include "trace.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "fingerprint.h"

namespace commtune {

namespace {

/// Elements whose sums go into a digest, at least: a single sum comes out the same in some
/// orders, so that small sizes are done several times, with other data.
constexpr std::size_t kFewestElements = 256;
constexpr int kSettlingCalls = 16;

std::uint64_t rounds_for(const Layout& layout) {
  return (kFewestElements + layout.receive_count - 1) / layout.receive_count;
}

}  // namespace

TraceResult Tracer::trace(std::size_t bytes) {
  const Layout layout = lay_out(options_.operation, options_.type, bytes, world_.size());
  backend_.prepare(layout);
  settle();
  if (world_.is_first()) std::fprintf(stderr, "commtune-bench: size %zu\n", bytes);
  if (!shows_order(layout.operation, layout.type, options_.reduction, layout.ranks)) {
    backend_.run(1);
    return {bytes, 1, std::nullopt, std::nullopt};
  }
  const std::uint64_t rounds = rounds_for(layout);
  const auto digests = world_.gather(hexadecimal(digest_of(layout, rounds)));
  Digest all;
  for (const std::string& digest : digests) all.add(digest.data(), digest.size());
  TraceResult result{bytes, rounds, hexadecimal(all.value()), std::nullopt};
  if (layout.operation == Operation::allreduce) {
    result.agree = std::all_of(digests.begin(), digests.end(),
                               [&](const std::string& digest) { return digest == digests[0]; });
  }
  return result;
}

void Tracer::settle() {
  if (!is_settled_) backend_.run(kSettlingCalls);
  is_settled_ = true;
  world_.barrier();
}

std::uint64_t Tracer::digest_of(const Layout& layout, std::uint64_t rounds) {
  Digest digest;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    fill_wide(layout.type, backend_.send(), layout.send_count, world_.rank(), round);
    backend_.run(1);
    digest.add(backend_.received(), layout.receive_count * size_of(layout.type));
  }
  return digest.value();
}

}  // namespace commtune
