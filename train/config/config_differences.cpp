#include "train/config/config_differences.h"

#include <algorithm>

#include "base/utf8.h"
#include "train/config/config_fields.h"

namespace onestep::train {

std::vector<std::vector<std::string>> config_differences(const std::vector<Config>& configs) {
  std::vector<std::vector<std::string>> rows;
  for (const Field& field : config_fields()) {
    std::vector<std::string> row = {field.path};
    for (const Config& config : configs)
      row.push_back(applies(field, config) ? printable(to_json(value_of(field, config))) : "-");
    if (std::any_of(row.begin() + 1, row.end(), [&](const std::string& each) { return each != row[1]; }))
      rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace onestep::train
