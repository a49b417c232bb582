// Profiles as one self-contained page: no network, no fonts, no scripts from elsewhere; light and dark by the reader's
// setting. The page holds the same numbers as the JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/profile/compare.h"
#include "daemon/profile/report.h"

namespace kernelwright::profile {

struct HtmlPart {
  ProfileReport report;
  std::optional<Comparison> comparison;
};

// One section for each part (a chip); `parts` must not be empty.
std::string ReportToHtml(const std::vector<HtmlPart>& parts);

}  // namespace kernelwright::profile
