// See structured.h.
#include "daemon/models/structured.h"

#include <utility>

#include "daemon/models/json_schema.h"

namespace kernelwright::models {

tl::expected<StructuredAnswer, StructuredFailure> AskStructured(Model& model, Request request,
                                                                const AskOptions& options, int questions) {
  std::vector<CallRecord> records;
  std::string last_text;
  Status problem;
  for (int asked = 0; asked < questions; ++asked) {
    AskResult result = model.Ask(request, options);
    if (!result) {
      records.push_back(std::move(result.error().record));
      return tl::unexpected(StructuredFailure{std::move(result.error().error), std::move(records)});
    }
    records.push_back(std::move(result->record));
    const std::string text = result->reply.message.Text();
    Expected<Json> value = ReadStructured(text, request.output->schema);
    if (value) return StructuredAnswer{*std::move(value), std::move(records)};
    problem = value.error();
    if (asked > 0 && text == last_text) break;
    last_text = text;
    request.messages.push_back(std::move(result->reply.message));
    request.messages.push_back(Message::User(problem.message() + ". " + problem.remedy()));
  }
  return tl::unexpected(StructuredFailure{
      MakeError(Cause::kMalformed, problem.message(), model.Name(), "Choose another model for this task."),
      std::move(records)});
}

}  // namespace kernelwright::models
