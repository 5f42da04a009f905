#pragma once

#include <optional>
#include <string>

#include "berth/command/syntax.h"
#include "berth/request/inherited_mask.h"
#include "berth/request/request_fields.h"
#include "berth/source/source.h"

namespace berth::command {

/// The options of a request, the same for pick, why and run.
struct RequestOptions {
  Request request;
  bool uuids = false;  ///< --ids uuid
  MaskUse mask = MaskUse::inherit;
  source::SourceKind source = source::SourceKind::kAutomatic;
  std::optional<unsigned> count;  ///< as given; `request.count` is the one that counts
};

/// Adds the options to `syntax`. They write into `options`, which must outlive the syntax.
void add_request_options(Syntax& syntax, RequestOptions& options);

/// Adds the rows of one part, under this heading. They write into `request`.
void add_fields(Syntax& syntax, RequestPart part, std::string_view group, Request& request);

/// Settles what depends on several options, after they are parsed. Error: `usage` for
/// contradictions.
Result<void> settle(RequestOptions& options);

/// The option of a row, which writes into `request`. For commands that take a part of the options.
Option field_option(const RequestField& field, std::string_view group, Request& request);

/// `--source`, also for commands that take no request.
Option source_option(source::SourceKind& source);

}  // namespace berth::command
