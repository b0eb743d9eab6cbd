#include "ranks/world.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>

#include "error.h"
#include "timing/clock.h"

namespace commtune {

namespace {

constexpr int kTag = 7;

/// One line, its runs of blanks made single.
std::string tidy(const std::string& line) {
  std::istringstream words(line);
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

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
}

World::World(const World& whole, int part, int order) : init_s_(whole.init_s_) {
  COMMTUNE_MPI(MPI_Comm_split(whole.communicator_, part, order, &communicator_));
  COMMTUNE_MPI(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN));
  COMMTUNE_MPI(MPI_Comm_rank(communicator_, &rank_));
  COMMTUNE_MPI(MPI_Comm_size(communicator_, &size_));
}

World::~World() {
  // A destructor can't report; a failure here can't change a record that is written already.
  if (communicator_ == MPI_COMM_WORLD) {
    static_cast<void>(MPI_Finalize());
  } else if (std::uncaught_exceptions() == 0) {
    // All ranks have to come here: after a failure they may not.
    static_cast<void>(MPI_Comm_free(&communicator_));
  }
}

void World::end_process(int status) {
  static_cast<void>(MPI_Finalize());
  // Not _Exit: MPICH's mpiexec then takes some ranks for failed, and kills the others.
  std::exit(status);
}

void World::barrier() const { COMMTUNE_MPI(MPI_Barrier(communicator_)); }

template <class Value, class Combine>
void World::reduce_to_first(std::vector<Value>& values, MPI_Datatype type, Combine combine) const {
  std::vector<Value> other(values.size());
  const int count = static_cast<int>(values.size());
  for (int step = 1; step < size_; step *= 2) {
    if (rank_ % (2 * step) != 0) {
      COMMTUNE_MPI(MPI_Send(values.data(), count, type, rank_ - step, kTag, communicator_));
      return;
    }
    if (rank_ + step < size_) {
      COMMTUNE_MPI(MPI_Recv(other.data(), count, type, rank_ + step, kTag, communicator_,
                            MPI_STATUS_IGNORE));
      std::transform(values.begin(), values.end(), other.begin(), values.begin(), combine);
    }
  }
}

void World::max_to_first(std::vector<double>& values) const {
  reduce_to_first(values, MPI_DOUBLE, [](double a, double b) { return std::max(a, b); });
}

void World::min_to_first(std::vector<double>& values) const {
  reduce_to_first(values, MPI_DOUBLE, [](double a, double b) { return std::min(a, b); });
}

void World::sum_to_first(std::vector<std::uint64_t>& values) const {
  reduce_to_first(values, MPI_UINT64_T, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

void World::spread(void* data, int bytes) const {
  int step = 1;
  while (step < size_) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (rank_ % (2 * step) == 0 && rank_ + step < size_) {
      COMMTUNE_MPI(MPI_Send(data, bytes, MPI_BYTE, rank_ + step, kTag, communicator_));
    } else if (rank_ % (2 * step) == step) {
      COMMTUNE_MPI(
          MPI_Recv(data, bytes, MPI_BYTE, rank_ - step, kTag, communicator_, MPI_STATUS_IGNORE));
    }
  }
}

std::string World::from_first(const std::string& text) const {
  std::string result(from_first(text.size()), '\0');
  if (is_first()) result = text;
  spread(result.data(), static_cast<int>(result.size()));
  return result;
}

std::vector<std::string> World::gather(const std::string& text) const {
  if (!is_first()) {
    COMMTUNE_MPI(
        MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, kTag, communicator_));
    return {};
  }
  std::vector<std::string> texts{text};
  for (int source = 1; source < size_; ++source) {
    MPI_Status status;
    int length = 0;
    COMMTUNE_MPI(MPI_Probe(source, kTag, communicator_, &status));
    COMMTUNE_MPI(MPI_Get_count(&status, MPI_CHAR, &length));
    std::string other(static_cast<std::size_t>(length), '\0');
    COMMTUNE_MPI(
        MPI_Recv(other.data(), length, MPI_CHAR, source, kTag, communicator_, MPI_STATUS_IGNORE));
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

void fail_together(const World& world, const std::string& problem) {
  const std::vector<std::string> problems = world.gather(problem);
  std::string first;
  for (std::size_t rank = 0; rank < problems.size() && first.empty(); ++rank) {
    if (problems[rank].empty()) continue;
    first = "rank " + std::to_string(rank) + ": " + problems[rank];
  }
  first = world.from_first(first);
  if (!first.empty()) throw UsageError(first);
}

}  // namespace commtune
