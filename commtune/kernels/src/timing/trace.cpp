#include "timing/trace.h"

#include <algorithm>
#include <cstdio>
#include <functional>
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

std::string digest_of_all(const std::vector<std::string>& digests) {
  Digest all;
  for (const std::string& digest : digests) all.add(digest.data(), digest.size());
  return hexadecimal(all.value());
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
  TraceResult result{bytes, 1, std::nullopt, std::nullopt, std::nullopt};
  const auto before = counts_.read();
  if (shows_order(layout.operation, layout.type, options_.reduction, layout.ranks)) {
    see_order(work, layout, result);
  } else {
    work.one_by_one(1);
  }
  result.messages = messages_since(before);
  return result;
}

void Tracer::see_order(Work& work, const Layout& layout, TraceResult& result) {
  result.operations = rounds_for(layout);
  const auto own = hexadecimal(digest_of(work, layout, result.operations));
  const auto digests = world_.gather(own);
  result.digest = digest_of_all(digests);
  if (layout.operation == Operation::allreduce) {
    result.agree = std::all_of(digests.begin(), digests.end(),
                               [&](const std::string& digest) { return digest == digests[0]; });
  }
}

std::optional<std::string> Tracer::messages_since(
    const std::optional<std::vector<unsigned long>>& before) const {
  std::string own;
  if (auto counts = counts_.read(); counts && before) {
    std::transform(counts->begin(), counts->end(), before->begin(), counts->begin(),
                   std::minus<>());
    Digest digest;
    digest.add(counts->data(), counts->size() * sizeof counts->front());
    own = hexadecimal(digest.value());
  }
  const auto digests = world_.gather(own);
  const bool all_count = std::none_of(digests.begin(), digests.end(),
                                      [](const std::string& digest) { return digest.empty(); });
  return all_count ? std::make_optional(digest_of_all(digests)) : std::nullopt;
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
