// Coordinates are those of a viewBox 1000 wide; the page scales it.
#include "daemon/profile/html_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "daemon/profile/advice.h"
#include "daemon/profile/html_text.h"

namespace kernelwright::profile {
namespace {

std::string Rect(const char* css, double x, double y, double width, double height, const std::string& more,
                 const std::string& title) {
  return std::string("<rect class=\"") + css + "\" x=\"" + Fixed(x, 1) + "\" y=\"" + Fixed(y, 1) + "\" width=\"" +
         Fixed(std::max(width, 0.5), 1) + "\" height=\"" + Fixed(height, 1) + "\"" + more +
         (title.empty() ? "/>" : "><title>" + Escape(title) + "</title></rect>");
}

std::string Text(double x, double y, const std::string& text, const char* css = "", const char* anchor = "start") {
  return "<text x=\"" + Fixed(x, 1) + "\" y=\"" + Fixed(y, 1) + "\" text-anchor=\"" + anchor + "\"" +
         (*css != 0 ? std::string(" class=\"") + css + "\"" : "") + ">" + Escape(text) + "</text>";
}

std::string Line(double x1, double y1, double x2, double y2, const char* css) {
  return "<path class=\"" + std::string(css) + "\" d=\"M" + Fixed(x1, 1) + " " + Fixed(y1, 1) + "L" + Fixed(x2, 1) +
         " " + Fixed(y2, 1) + "\"/>";
}

std::string Open(double height, const std::string& label) {
  return "<svg viewBox=\"0 0 1000 " + Fixed(height, 0) + "\" role=\"img\" aria-label=\"" + Escape(label) + "\">";
}

constexpr double kLeft = 90;
constexpr double kRight = 980;

}  // namespace

std::string RooflineSvg(const Roofline& roofline, const std::string& name) {
  constexpr double kTop = 20;
  constexpr double kBottom = 250;
  const double ridge = roofline.peak / roofline.bandwidth;
  const double x_low = std::floor(std::log10(std::min(roofline.intensity, ridge))) - 0.5;
  const double x_high = std::ceil(std::log10(std::max(roofline.intensity, ridge))) + 0.5;
  const double y_high = std::log10(roofline.peak) + 0.4;
  const double y_low = std::min(std::log10(roofline.achieved), std::log10(roofline.peak) - 2) - 0.4;
  const auto x = [&](double log) { return kLeft + (log - x_low) / (x_high - x_low) * (kRight - kLeft); };
  const auto y = [&](double log) { return kBottom - (log - y_low) / (y_high - y_low) * (kBottom - kTop); };
  std::string svg = Open(290, "roofline of " + name);
  for (double decade = std::ceil(x_low); decade <= x_high; decade += 1) {
    svg += Line(x(decade), kTop, x(decade), kBottom, "g");
    svg += Text(x(decade), kBottom + 16, Compact(std::pow(10, decade)), "s", "middle");
  }
  for (double decade = std::ceil(y_low); decade <= y_high; decade += 1) {
    svg += Line(kLeft, y(decade), kRight, y(decade), "g");
    svg += Text(kLeft - 8, y(decade) + 4, Compact(std::pow(10, decade)), "s", "end");
  }
  // The slope is cut off where it leaves the picture.
  const double slope_start = std::max(x_low, y_low - std::log10(roofline.bandwidth));
  svg += "<path class=\"l\" d=\"M" + Fixed(x(slope_start), 1) + " " +
         Fixed(y(slope_start + std::log10(roofline.bandwidth)), 1) + "L" + Fixed(x(std::log10(ridge)), 1) + " " +
         Fixed(y(std::log10(roofline.peak)), 1) + "L" + Fixed(kRight, 1) + " " +
         Fixed(y(std::log10(roofline.peak)), 1) + "\"/>";
  svg +=
      Text(kRight, y(std::log10(roofline.peak)) - 6, Compact(roofline.peak) + "flop/s " + roofline.dtype, "s", "end");
  const double px = x(std::log10(roofline.intensity));
  const double py = y(std::log10(roofline.achieved));
  const double roof = std::log10(std::min(roofline.peak, roofline.intensity * roofline.bandwidth));
  svg += "<path class=\"g\" stroke-dasharray=\"4 4\" d=\"M" + Fixed(px, 1) + " " + Fixed(py, 1) + "L" + Fixed(px, 1) +
         " " + Fixed(y(roof), 1) + "\"/>";
  svg += "<circle class=\"b\" r=\"6\" cx=\"" + Fixed(px, 1) + "\" cy=\"" + Fixed(py, 1) + "\"><title>" +
         Escape(name + ": " + Compact(roofline.achieved) + "flop/s at " + Compact(roofline.intensity) + " flop/byte") +
         "</title></circle>";
  const bool left = px > 700;
  svg += Text(px + (left ? -12 : 12), py + 4,
              name + ": " + Percent(roofline.attainable_share) + " of what is attainable", "", left ? "end" : "start");
  svg += Text((kLeft + kRight) / 2, 284, "flop per byte of HBM traffic", "s", "middle");
  return svg + "</svg>";
}

std::string TimelineSvg(const Step& step, const std::string& anchor) {
  constexpr std::array<const char*, 8> kRows = {"MXU", "VPU", "XLU", "EUP", "load", "store", "scalar", "wait"};
  constexpr double kRow = 20;
  constexpr double kTop = 6;
  const Timeline& timeline = step.timeline;
  const size_t slices = timeline.lines.size();
  const double width = (kRight - kLeft) / static_cast<double>(std::max<size_t>(slices, 1));
  const size_t copies = std::min<size_t>(timeline.copies.size(), 12);
  const double bottom = kTop + kRow * kRows.size() + (copies > 0 ? 8 + 8.0 * static_cast<double>(copies) : 0);
  std::string svg = Open(bottom + 24, "timeline of a step");
  double top = kTop;
  for (const char* row : kRows) {
    svg += Text(kLeft - 8, top + 14, row, "s", "end") + Line(kLeft, top + kRow, kRight, top + kRow, "g");
    const auto found = timeline.units.find(row);
    if (found != timeline.units.end()) {
      const std::vector<double>& busy = found->second;
      const auto level = [&](size_t i) { return static_cast<int>(std::ceil(busy[i] * 10)); };
      for (size_t i = 0; i < busy.size();) {
        size_t end = i + 1;
        while (end < busy.size() && level(end) == level(i) && timeline.lines[end] == timeline.lines[i]) ++end;
        if (level(i) > 0) {
          const std::string line = std::to_string(timeline.lines[i]);
          std::string more = " opacity=\"" + Fixed(0.1 + 0.09 * level(i), 2) + "\"";
          if (timeline.lines[i] > 0) more += " data-line=\"" + Escape(anchor) + line + "\"";
          const std::string title = std::string(row) + " " + Percent(busy[i]) + ", cycle " +
                                    Fixed(static_cast<double>(i) * timeline.slice_cycles, 0) +
                                    (timeline.lines[i] > 0 ? ", line " + line : "");
          svg += Rect(std::string_view(row) == "wait" ? "w" : "b", kLeft + width * static_cast<double>(i), top + 2,
                      width * static_cast<double>(end - i), kRow - 4, more, title);
        }
        i = end;
      }
    }
    top += kRow;
  }
  const auto x = [&](double cycle) {
    return kLeft + std::clamp(cycle / std::max(timeline.cycles, 1.0), 0.0, 1.0) * (kRight - kLeft);
  };
  if (copies > 0) svg += Text(kLeft - 8, top + 14, "copies", "s", "end");
  top += 8;
  for (size_t i = 0; i < copies; ++i) {
    const Timeline::Copy& copy = timeline.copies[i];
    svg += Rect("o", x(copy.start), top, x(copy.done) - x(copy.start), 5, "",
                Bytes(copy.bytes) + " copied from cycle " + Fixed(copy.start, 0) + " to " + Fixed(copy.done, 0) +
                    (copy.done > timeline.cycles ? ", in a later step" : ""));
    top += 8;
  }
  svg += Text(kLeft, bottom + 18, "0", "s", "middle");
  svg += Text(kRight, bottom + 18,
              Fixed(timeline.cycles, 0) + " cycles" +
                  (timeline.steps > 1 ? ", " + std::to_string(timeline.steps) + " steps" : ""),
              "s", "end");
  return svg + "</svg>";
}

std::string VmemSvg(const VmemMap& vmem) {
  constexpr double kTop = 18;
  constexpr double kHeight = 34;
  const auto full = static_cast<double>(std::max({vmem.total, vmem.limit, int64_t{1}}));
  const auto x = [&](double bytes) { return 10 + bytes / full * (kRight - 10); };
  std::string svg = Open(kTop + kHeight + 28, "VMEM by allocation");
  double at = 0;
  size_t index = 0;
  for (const VmemRegion& region : vmem.regions) {
    const auto bytes = static_cast<double>(region.bytes);
    const bool waste = region.kind == "spill slots";
    svg += Rect(waste ? "w" : "b", x(at), kTop, x(at + bytes) - x(at) - 1, kHeight,
                " opacity=\"" + Fixed(0.85 - 0.12 * static_cast<double>(index % 4), 2) + "\"",
                region.what + ", " + region.shape + ": " + Bytes(bytes) +
                    (region.buffers > 1 ? " in " + std::to_string(region.buffers) + " buffers" : ""));
    if (x(at + bytes) - x(at) > 90) svg += Text(x(at) + 4, kTop + kHeight + 16, region.what, "s");
    at += bytes;
    ++index;
  }
  const double limit = x(static_cast<double>(vmem.limit));
  svg += Line(limit, kTop - 6, limit, kTop + kHeight + 6, "l");
  svg += Text(limit, 10, "limit " + Bytes(static_cast<double>(vmem.limit)), "", "end");
  return svg + "</svg>";
}

}  // namespace kernelwright::profile
