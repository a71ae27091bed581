#include "policies/action.h"

#include <stdexcept>

namespace headway::policies {

const char* name_of(Candidate::Kind kind) {
    switch (kind) {
        case Candidate::Kind::kKeep:
            return "keep";
        case Candidate::Kind::kWaitForReplacement:
            return "wait-for-replacement";
        case Candidate::Kind::kShareMicroBatches:
            return "share-micro-batches";
        case Candidate::Kind::kSplitLayers:
            return "split-layers";
        case Candidate::Kind::kSplitAndShare:
            return "split-and-share";
        case Candidate::Kind::kPlaceRanks:
            return "place-ranks";
        case Candidate::Kind::kChangeDegrees:
            return "change-degrees";
        case Candidate::Kind::kDropGpus:
            return "drop-gpus";
        case Candidate::Kind::kBringBack:
            return "bring-back";
        case Candidate::Kind::kReturn:
            return "return";
        case Candidate::Kind::kRestart:
            return "restart";
        case Candidate::Kind::kFurther:
            return "further";
    }
    throw std::logic_error("a candidate of unknown kind");
}

}  // namespace headway::policies
