// The name of the document type, for headers that only pass it on: nlohmann_json costs seconds in
// every file that includes it, and most files never look into a document. Who does includes
// base/json.h.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace wherry {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were put

}  // namespace wherry
