package stores

import (
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Program text that calls a database: the methods of drivers and object mappers,
// SQL in their arguments, and bytes that are written to a connection.

// DriverEffects are the effects of drivers' methods by their names: on everything,
// and on what a filter picks if the method takes one.
var DriverEffects = map[string]struct{ Whole, Scoped string }{
	"dropDatabase": {"nosql.database-drop", ""}, "drop_database": {"nosql.database-drop", ""}, "_dropDatabase": {"nosql.database-drop", ""}, "DropDatabase": {"nosql.database-drop", ""}, "deleteDatabase": {"nosql.database-drop", ""}, "drop_keyspace": {"nosql.database-drop", ""},
	"dropCollection": {"nosql.collection-drop", ""}, "drop_collection": {"nosql.collection-drop", ""}, "_drop": {"nosql.collection-drop", ""}, "deleteTable": {"nosql.collection-drop", ""}, "delete_table": {"nosql.collection-drop", ""}, "DropCollection": {"nosql.collection-drop", ""},
	"deleteMany": {"nosql.delete-all", "nosql.delete-scoped"}, "delete_many": {"nosql.delete-all", "nosql.delete-scoped"}, "DeleteMany": {"nosql.delete-all", "nosql.delete-scoped"},
	"updateMany": {"update.unbounded", "update.scoped"}, "update_many": {"update.unbounded", "update.scoped"}, "UpdateMany": {"update.unbounded", "update.scoped"},
	"flushall": {"nosql.redis.flush", ""}, "flushdb": {"nosql.redis.flush", ""}, "flushAll": {"nosql.redis.flush", ""}, "flushDb": {"nosql.redis.flush", ""}, "flushDB": {"nosql.redis.flush", ""}, "FlushAll": {"nosql.redis.flush", ""}, "FlushDB": {"nosql.redis.flush", ""}, "flush_all": {"nosql.redis.flush", ""},
	"config_set": {"nosql.redis.config-write", ""}, "configSet": {"nosql.redis.config-write", ""},
	"dropSchema": {"drop.schema", ""}, "drop_schema": {"drop.schema", ""}, "dropAllTables": {"drop.schema", ""}, "dropAllSchemas": {"drop.schema", ""}, "drop_all": {"drop.schema", ""}, "dropAllSequences": {"drop.other", ""},
	"dropTable": {"drop.table", ""}, "drop_table": {"drop.table", ""}, "dropTableIfExists": {"drop.table", ""}, "drop_tables": {"drop.table", ""}, "DropTable": {"drop.table", ""}, "DropTableIfExists": {"drop.table", ""},
	"dropColumn": {"drop.column", ""}, "removeColumn": {"drop.column", ""}, "remove_column": {"drop.column", ""}, "drop_column": {"drop.column", ""}, "DropColumn": {"drop.column", ""},
	"truncate_table": {"truncate", ""}, "truncateTable": {"truncate", ""}, "truncate_all": {"truncate", ""},
	"purgeQueue": {"nosql.queue-purge", ""}, "purge_queue": {"nosql.queue-purge", ""}, "queue_purge": {"nosql.queue-purge", ""}, "queuePurge": {"nosql.queue-purge", ""}, "deleteQueue": {"nosql.queue-purge", ""}, "delete_queue": {"nosql.queue-purge", ""}, "queue_delete": {"nosql.queue-purge", ""}, "obliterate": {"nosql.queue-purge", ""},
	"deleteTopics": {"nosql.topic-delete", ""}, "delete_topics": {"nosql.topic-delete", ""}, "deleteTopic": {"nosql.topic-delete", ""}, "delete_topic": {"nosql.topic-delete", ""}, "DeleteTopics": {"nosql.topic-delete", ""}, "delete_stream": {"nosql.topic-delete", ""}, "deleteStream": {"nosql.topic-delete", ""},
	"deleteAllInBatch": {"delete.unbounded", ""}, "deleteAllRows": {"delete.unbounded", ""},
}

// Calls are functions that run the SQL in their first argument.
var Calls = scan.SetOf(`execute executemany executescript execute_sql executeSql exec_driver_sql execute_immediate exec exec_query exec_sql exec_update exec_delete
	query queryRaw query_raw rawQuery raw_query raw rawSql execSQL execSql multi_query multiQuery real_query run all each none any one oneOrNone manyOrNone many result multi batch
	$executeRaw $executeRawUnsafe $queryRaw $queryRawUnsafe executeRaw executeRawUnsafe queryRawUnsafe executeUpdate executeQuery executeLargeUpdate executeStatement executeNonQuery ExecuteNonQuery ExecuteSqlRaw ExecuteSqlRawAsync ExecuteSqlCommand FromSqlRaw
	createQuery createNativeQuery createSQLQuery nativeQuery do prepare selectall_arrayref selectrow_array unprepared statement affectingStatement sql read_sql read_sql_query run_sql runSql
	Exec ExecContext Query QueryRow QueryContext MustExec NamedExec Raw pg_query mysqli_query mysqli_multi_query mysql_query sqlite_exec odbc_exec sqlsrv_query oci_parse db_query unsafe command execute_command sendCommand send_command sendCommandRaw call execute_query executeScript delete update select select_all select_value client_query simpleQuery sendline dbExecute dbSendStatement dbSendQuery dbGetQuery sqlQuery sqlExec executeStatement`)

// ChainFilters are parts of a chain that pick rows.
var ChainFilters = []string{"where", "Where", "filter(", "find(", "find_by", "findBy", "findOrFail", "findOne", "findFirst", "limit(", "first", "get("}
