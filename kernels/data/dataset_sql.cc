#include <sqlite3.h>

#include <cstring>
#include <utility>

#include "weir/core/io/file.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// The dataset of the rows that a query returns from an SQLite database. SQLite itself opens no
// file: the database is read into memory through Files(), other databases cannot be attached,
// temporary tables stay in memory, and statements other than queries are refused. So the rules of a
// server about files hold for it too.
namespace weir {

namespace {

using SqlTypes =
    List<std::string, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, bool, double>;

struct SqlQuery {
  std::string path, text;
  DataTypes types;  // of the columns
};

// A query that is being run. Not thread-safe.
class SqlRows {
 public:
  static absl::StatusOr<std::shared_ptr<SqlRows>> Open(const SqlQuery& query) {
    std::shared_ptr<SqlRows> rows(new SqlRows(query));
    WEIR_RETURN_IF_ERROR(rows->Load());
    WEIR_RETURN_IF_ERROR(rows->Prepare());
    return rows;
  }
  ~SqlRows() {
    sqlite3_finalize(statement_);
    sqlite3_close(database_);
  }
  SqlRows(const SqlRows&) = delete;
  SqlRows& operator=(const SqlRows&) = delete;

  // A query whose step was cancelled begins again, and skips what it has returned.
  MaybeElement Next(const Cancellation* cancellation) {
    if (ended_) return std::nullopt;
    cancellation_ = cancellation;
    do {
      const int result = sqlite3_step(statement_);
      if (result == SQLITE_INTERRUPT && IsCancelled()) {
        sqlite3_reset(statement_);
        read_ = 0;
        return cancellation_->status();
      }
      ended_ = result != SQLITE_ROW;
      if (result == SQLITE_DONE) return std::nullopt;
      if (ended_) return Error("query failed");
      ++read_;
    } while (read_ <= returned_);
    ++returned_;
    Tensors row;
    for (int i = 0; i < static_cast<int>(query_.types.size()); ++i) row.push_back(Column(i));
    return row;
  }

 private:
  explicit SqlRows(SqlQuery query) : query_(std::move(query)) {}

  absl::Status Load() {
    WEIR_ASSIGN_OR_RETURN(const std::string file, ReadFile(query_.path));
    if (sqlite3_open_v2(":memory:", &database_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK)
      return Error("SQLite cannot be started");
    auto* const bytes = static_cast<unsigned char*>(sqlite3_malloc64(file.size() + 1));
    if (bytes == nullptr) return absl::ResourceExhaustedError("no memory for " + query_.path);
    std::memcpy(bytes, file.data(), file.size());
    WEIR_RETURN_IF_ERROR(LeaveWalMode(bytes, file.size()));
    const auto size = static_cast<sqlite3_int64>(file.size());
    // SQLite frees the bytes, also after an error.
    if (sqlite3_deserialize(database_, "main", bytes, size, size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) !=
        SQLITE_OK)
      return Error("database cannot be read");
    constexpr int kMostBytes = 1 << 28;  // of a value
    sqlite3_limit(database_, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, kMostBytes);
    sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_exec(database_, "PRAGMA temp_store = MEMORY", nullptr, nullptr, nullptr);
    sqlite3_set_authorizer(database_, Authorize, nullptr);
    constexpr int kInstructions = 1000;  // between two calls
    sqlite3_progress_handler(
        database_, kInstructions,
        [](void* rows) { return static_cast<SqlRows*>(rows)->IsCancelled() ? 1 : 0; }, this);
    return absl::OkStatus();
  }

  // A database with a write-ahead log says so in two bytes of its header. Without the log, which is
  // another file, it is read like any other.
  absl::Status LeaveWalMode(unsigned char* bytes, size_t size) const {
    constexpr size_t kVersions = 18;
    if (size < kVersions + 2 || bytes[kVersions] != 2) return absl::OkStatus();
    if (Files().Exists(query_.path + "-wal")) {
      sqlite3_free(bytes);
      return FailedPrecondition(query_.path,
                                " has a write-ahead log; close the program that "
                                "writes it, or run PRAGMA wal_checkpoint");
    }
    bytes[kVersions] = bytes[kVersions + 1] = 1;
    return absl::OkStatus();
  }

  absl::Status Prepare() {
    if (sqlite3_prepare_v2(database_, query_.text.data(), static_cast<int>(query_.text.size()),
                           &statement_, nullptr) != SQLITE_OK)
      return Error("query cannot be prepared");
    // An empty query has no statement, and no columns.
    const auto columns = static_cast<size_t>(sqlite3_column_count(statement_));
    if (columns == query_.types.size()) return absl::OkStatus();
    return InvalidArgument("The number of columns in query (", columns,
                           ") must match the number of elements in output_types (",
                           query_.types.size(), ").");
  }

  static int Authorize(void*, int action, const char*, const char*, const char*, const char*) {
    const bool reads = action == SQLITE_SELECT || action == SQLITE_READ ||
                       action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE;
    return reads ? SQLITE_OK : SQLITE_DENY;
  }

  bool IsCancelled() const { return cancellation_ != nullptr && cancellation_->cancelled(); }

  absl::Status Error(absl::string_view what) const {
    const int code = sqlite3_errcode(database_);
    const std::string text = absl::StrCat(query_.path, ": ", what, ": ", sqlite3_errmsg(database_));
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) return DataLoss(text);
    if (code == SQLITE_NOMEM || code == SQLITE_TOOBIG) return absl::ResourceExhaustedError(text);
    return InvalidArgument(text);
  }

  Tensor Column(int i) const {
    Tensor value;
    DispatchType(query_.types[static_cast<size_t>(i)], SqlTypes{}, [&]<class T>() {
      if constexpr (std::is_same_v<T, std::string>) {
        const auto* const text = sqlite3_column_text(statement_, i);
        const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, i));
        value = Tensor::Scalar(text == nullptr
                                   ? std::string()
                                   : std::string(reinterpret_cast<const char*>(text), size));
      } else if constexpr (std::is_same_v<T, double>) {
        value = Tensor::Scalar(sqlite3_column_double(statement_, i));
      } else if constexpr (std::is_same_v<T, bool>) {
        value = Tensor::Scalar(sqlite3_column_int(statement_, i) != 0);
      } else {
        value = Tensor::Scalar(static_cast<T>(sqlite3_column_int64(statement_, i)));
      }
    });
    return value;
  }

  const SqlQuery query_;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  const Cancellation* cancellation_ = nullptr;  // of the step that waits for a row
  int64_t read_ = 0, returned_ = 0;             // rows
  bool ended_ = false;
};

absl::Status SqlDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string driver, ReadString(c.input(0), "driver_name"));
  SqlQuery query;
  WEIR_ASSIGN_OR_RETURN(query.path, ReadString(c.input(1), "data_source_name"));
  WEIR_ASSIGN_OR_RETURN(query.text, ReadString(c.input(2), "query"));
  if (driver != "sqlite") {
    return InvalidArgument("The database type, ", driver,
                           ", is not supported by SqlDataset. The set of supported databases is: "
                           "{'sqlite'}.");
  }
  query.types = c.node().attr<DataTypes>("output_types");
  for (const DataType type : query.types) {
    if (DispatchType(type, SqlTypes{}, []<class T>() {})) continue;
    return InvalidArgument(
        "Each element of `output_types_` must be one of: DT_STRING, DT_INT8, DT_INT16, DT_INT32, "
        "DT_INT64, DT_UINT8, DT_UINT16, DT_BOOL, DT_DOUBLE, not ",
        DataTypeName(type));
  }
  for (const Shape& shape : c.node().attr<std::vector<Shape>>("output_shapes")) {
    if (!shape.IsCompatibleWith(Shape()))
      return InvalidArgument("Each element of `output_shapes_` must be a scalar.");
  }
  c.SetOutput(0, DatasetTensor(DatasetOf([query] {
                return IteratorOf([query, rows = std::shared_ptr<SqlRows>()](
                                      const DatasetContext& x) mutable -> MaybeElement {
                  if (rows == nullptr) {
                    WEIR_ASSIGN_OR_RETURN(rows, SqlRows::Open(query));
                  }
                  return rows->Next(x.step.cancellation);
                });
              })));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetSqlKernels(KernelRegistry* r) {
  r->Add("ExperimentalSqlDataset", kCpu, SqlDataset);
  r->Add("SqlDataset", kCpu, SqlDataset);
}

}  // namespace weir
