// Asking for an answer of a given form: when what comes does not fit the schema, the model is told what is wrong and
// asked again, a few times.
#pragma once

#include <vector>

#include "daemon/models/model.h"

namespace kernelwright::models {

struct StructuredAnswer {
  Json value;
  std::vector<CallRecord> records;  // of all questions
};

struct StructuredFailure {
  CallError error;
  std::vector<CallRecord> records;
};

// `request.output` must be set. At most `questions` are asked; the same wrong answer twice ends it sooner.
tl::expected<StructuredAnswer, StructuredFailure> AskStructured(Model& model, Request request,
                                                                const AskOptions& options, int questions = 3);

}  // namespace kernelwright::models
