#include "timing/trace.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "timing/fingerprint.h"

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
  const Plan plan =
      plan_of(options_.operation, options_.type, bytes, world_.size(), options_.shape);
  const Layout& layout = plan.layout;
  Work work(bench_.backends, world_, bench_.node_of, plan, options_.reduction, options_.shape,
            Part::whole, {bench_.buffers});
  settle(work);
  if (world_.is_first()) std::fprintf(stderr, "commtune-bench: size %zu\n", bytes);
  if (!shows_order(layout.operation, layout.type, options_.reduction, layout.ranks)) {
    work.one_by_one(1);
    return {bytes, 1, std::nullopt, std::nullopt};
  }
  const std::uint64_t rounds = rounds_for(layout);
  const auto digests = world_.gather(hexadecimal(digest_of(work, layout, rounds)));
  Digest all;
  for (const std::string& digest : digests) all.add(digest.data(), digest.size());
  TraceResult result{bytes, rounds, hexadecimal(all.value()), std::nullopt};
  if (layout.operation == Operation::allreduce) {
    result.agree = std::all_of(digests.begin(), digests.end(),
                               [&](const std::string& digest) { return digest == digests[0]; });
  }
  return result;
}

void Tracer::settle(Work& work) {
  if (!is_settled_) work.one_by_one(kSettlingCalls);
  is_settled_ = true;
  world_.barrier();
}

std::uint64_t Tracer::digest_of(Work& work, const Layout& layout, std::uint64_t rounds) {
  Memory& memory = bench_.backends.main->memory();
  const std::size_t element = size_of(layout.type);
  std::vector<std::byte> sent(layout.send_count * element);
  std::vector<std::byte> received(layout.receive_count * element);
  Digest digest;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    fill_wide(layout.type, sent.data(), layout.send_count, world_.rank(), round);
    memory.copy_in(bench_.buffers.send, sent.data(), sent.size());
    memory.set(bench_.buffers.received, 0, received.size());  // not all ranks receive
    work.one_by_one(1);
    memory.copy_out(received.data(), bench_.buffers.received, received.size());
    digest.add(received.data(), received.size());
  }
  return digest.value();
}

}  // namespace commtune
