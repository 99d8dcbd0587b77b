#pragma once
// The parts of the report page as they stand in page.html, style.css and page.js.

namespace onestep::train {

extern const char* const kReportPage;
extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace onestep::train
