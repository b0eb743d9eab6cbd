#include "ranks/world.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>
#include <utility>

#include "error.h"
#include "timing/clock.h"

namespace commtune {

namespace {

constexpr int kControlTag = 7;

/// One line, its runs of blanks made single.
std::string tidy(const std::string& line) {
  std::istringstream words(line);
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(MPI_Comm communicator) : communicator_(communicator) {}

  void barrier() override { COMMTUNE_MPI(MPI_Barrier(communicator_)); }

  void send(const void* data, std::size_t bytes, int to) override {
    COMMTUNE_MPI(MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, kControlTag, communicator_));
  }

  void receive(void* data, std::size_t bytes, int from) override {
    COMMTUNE_MPI(MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, kControlTag, communicator_,
                          MPI_STATUS_IGNORE));
  }

  std::size_t next_bytes(int from) override {
    MPI_Status status;
    int bytes = 0;
    COMMTUNE_MPI(MPI_Probe(from, kControlTag, communicator_, &status));
    COMMTUNE_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
    return static_cast<std::size_t>(bytes);
  }

 private:
  MPI_Comm communicator_;
};

}  // namespace

void fail_mpi(int code, const char* expression, const char* file, int line) {
  std::array<char, MPI_MAX_ERROR_STRING> words{};
  int length = 0;
  if (MPI_Error_string(code, words.data(), &length) != MPI_SUCCESS) length = 0;
  throw Error(std::string(file) + ":" + std::to_string(line) + ": " + expression + ": " +
              std::string(words.data(), static_cast<std::size_t>(length)));
}

World::World(int* argc, char*** argv) {
  const Clock clock;
  COMMTUNE_MPI(MPI_Init(argc, argv));
  init_s_ = clock.now();
  COMMTUNE_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  COMMTUNE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  COMMTUNE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  transport_ = std::make_unique<MpiTransport>(communicator_);
}

World::World(const World& whole, int part, int order) : init_s_(whole.init_s_) {
  COMMTUNE_MPI(MPI_Comm_split(whole.communicator(), part, order, &communicator_));
  COMMTUNE_MPI(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN));
  COMMTUNE_MPI(MPI_Comm_rank(communicator_, &rank_));
  COMMTUNE_MPI(MPI_Comm_size(communicator_, &size_));
  transport_ = std::make_unique<MpiTransport>(communicator_);
}

World::World(const World& whole, std::unique_ptr<Transport> transport)
    : communicator_(MPI_COMM_NULL),
      transport_(std::move(transport)),
      rank_(whole.rank_),
      size_(whole.size_) {}

World::~World() {
  // A destructor can't report; a failure here can't change a record that is written already.
  if (communicator_ == MPI_COMM_WORLD) {
    static_cast<void>(MPI_Finalize());
  } else if (!is_forked() && std::uncaught_exceptions() == 0) {
    // All ranks have to come here: after a failure they may not.
    static_cast<void>(MPI_Comm_free(&communicator_));
  }
}

MPI_Comm World::communicator() const {
  if (is_forked()) throw Error("MPI can't be used in a run of a shared launch");
  return communicator_;
}

void World::end_process(int status) const {
  if (is_forked()) {
    std::fflush(nullptr);
    _exit(status);  // what runs at exit belongs to the parent
  }
  static_cast<void>(MPI_Finalize());
  // Not _Exit: MPICH's mpiexec then takes some ranks for failed, and kills the others.
  std::exit(status);
}

bool World::has_message() const {
  int is_there = 0;
  COMMTUNE_MPI(
      MPI_Iprobe(MPI_ANY_SOURCE, kControlTag, communicator(), &is_there, MPI_STATUS_IGNORE));
  return is_there != 0;
}

template <class Value, class Combine>
void World::reduce_to_first(std::vector<Value>& values, Combine combine) const {
  std::vector<Value> other(values.size());
  const std::size_t bytes = values.size() * sizeof(Value);
  for (int step = 1; step < size_; step *= 2) {
    if (rank_ % (2 * step) != 0) return transport_->send(values.data(), bytes, rank_ - step);
    if (rank_ + step < size_) {
      transport_->receive(other.data(), bytes, rank_ + step);
      std::transform(values.begin(), values.end(), other.begin(), values.begin(), combine);
    }
  }
}

void World::max_to_first(std::vector<double>& values) const {
  reduce_to_first(values, [](double a, double b) { return std::max(a, b); });
}

void World::min_to_first(std::vector<double>& values) const {
  reduce_to_first(values, [](double a, double b) { return std::min(a, b); });
}

void World::sum_to_first(std::vector<std::uint64_t>& values) const {
  reduce_to_first(values, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

void World::spread(void* data, std::size_t bytes) const {
  int step = 1;
  while (step < size_) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (rank_ % (2 * step) == 0 && rank_ + step < size_) {
      transport_->send(data, bytes, rank_ + step);
    } else if (rank_ % (2 * step) == step) {
      transport_->receive(data, bytes, rank_ - step);
    }
  }
}

std::string World::from_first(const std::string& text) const {
  std::string result(from_first(text.size()), '\0');
  if (is_first()) result = text;
  spread(result.data(), result.size());
  return result;
}

std::vector<std::string> World::gather(const std::string& text) const {
  if (!is_first()) {
    transport_->send(text.data(), text.size(), 0);
    return {};
  }
  std::vector<std::string> texts{text};
  for (int source = 1; source < size_; ++source) {
    std::string other(transport_->next_bytes(source), '\0');
    transport_->receive(other.data(), other.size(), source);
    texts.push_back(std::move(other));
  }
  return texts;
}

std::string World::library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  COMMTUNE_MPI(MPI_Get_library_version(text.data(), &length));
  // Some libraries count the zero at the end as well.
  const std::string whole(text.data(), strnlen(text.data(), static_cast<std::size_t>(length)));
  return tidy(whole.substr(0, whole.find('\n')));
}

std::string World::standard() {
  int version = 0;
  int subversion = 0;
  COMMTUNE_MPI(MPI_Get_version(&version, &subversion));
  return std::to_string(version) + "." + std::to_string(subversion);
}

void fail_together(const World& world, const std::optional<UsageError>& problem) {
  // The status is a digit before the text.
  const std::vector<std::string> problems =
      world.gather(problem ? std::to_string(problem->status()) + problem->what() : "");
  std::string first;
  for (std::size_t rank = 0; rank < problems.size() && first.empty(); ++rank) {
    if (problems[rank].empty()) continue;
    first = problems[rank];
    first.insert(1, "rank " + std::to_string(rank) + ": ");
  }
  first = world.from_first(first);
  if (!first.empty()) throw UsageError(first.substr(1), static_cast<ExitStatus>(first[0] - '0'));
}

}  // namespace commtune
