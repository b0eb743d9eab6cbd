#include "interference/beside.h"

namespace commtune {

namespace {

constexpr int kQuestionTag = 3;
constexpr int kAnswerTag = 4;

struct Question {
  bool stops;
  int status;
};

}  // namespace

Traffic VictimLink::ask() const { return exchange(false, 0); }

Traffic VictimLink::stop(int status) const { return exchange(true, status); }

Traffic VictimLink::exchange(bool stops, int status) const {
  Traffic traffic;
  if (!all_.is_first()) return traffic;
  const Question question{stops, status};
  COMMTUNE_MPI(MPI_Send(&question, sizeof question, MPI_BYTE, aggressor_, kQuestionTag,
                        all_.communicator()));
  COMMTUNE_MPI(MPI_Recv(&traffic, sizeof traffic, MPI_BYTE, aggressor_, kAnswerTag,
                        all_.communicator(), MPI_STATUS_IGNORE));
  return traffic;
}

void AggressorLink::look(const Traffic& so_far) {
  int is_there = 0;
  COMMTUNE_MPI(MPI_Iprobe(0, kQuestionTag, all_.communicator(), &is_there, MPI_STATUS_IGNORE));
  if (is_there == 0) return;
  Question question{};
  COMMTUNE_MPI(MPI_Recv(&question, sizeof question, MPI_BYTE, 0, kQuestionTag, all_.communicator(),
                        MPI_STATUS_IGNORE));
  if (!question.stops) return answer(so_far);
  stops_ = true;
  status_ = question.status;
}

std::optional<Ending> AggressorLink::ending(bool /*signalled*/, double /*now_s*/) {
  return stops_ ? std::optional(Ending::measured) : std::nullopt;
}

void AggressorLink::confirm(const Traffic& in_all) const { answer(in_all); }

void AggressorLink::answer(const Traffic& traffic) const {
  COMMTUNE_MPI(MPI_Send(&traffic, sizeof traffic, MPI_BYTE, 0, kAnswerTag, all_.communicator()));
}

}  // namespace commtune
