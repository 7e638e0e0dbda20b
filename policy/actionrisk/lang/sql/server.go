package sql

import (
	"cmp"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// This file lists the procedures, functions and settings of database servers that run programs,
// access files or change rights.

// procedures maps the procedures that are built into servers to their effects. An empty effect
// means that the procedure only reads.
var procedures = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"sp_execute_external_script": "server.program", "sp_addextendedproc": "server.program", "sp_start_job": "server.program",
		"sp_procoption": "server.program", "xp_servicecontrol": "server.program", "xp_cmdshell": "server.program",
		"xp_dirtree": "server.file-read", "xp_fileexist": "server.file-read", "xp_subdirs": "server.file-read", "xp_readerrorlog": "",
		"xp_delete_file": "server.file-write", "xp_delete_files": "server.file-write", "xp_copy_file": "server.file-write", "xp_copy_files": "server.file-write",
		"sp_addsrvrolemember": "privilege.superuser", "sp_password": "privilege.password",
		"sp_addlogin": "privilege.grant", "sp_grantlogin": "privilege.grant", "sp_adduser": "privilege.grant", "sp_grantdbaccess": "privilege.grant",
		"sp_addlinkedserver": "server.config", "sp_addlinkedsrvlogin": "server.config", "sp_serveroption": "server.config", "sp_dboption": "server.config",
		"sp_rename": "ddl.rename", "sp_renamedb": "ddl.rename", "sp_changeobjectowner": "privilege.grant", "sp_changedbowner": "privilege.grant",
		"sp_detach_db": "drop.other", "sp_delete_backuphistory": "drop.other", "sp_delete_database_backuphistory": "drop.other", "sp_purge_jobhistory": "drop.other", "sp_cycle_errorlog": "server.config",
		"sp_delete_job": "drop.other", "sp_delete_jobstep": "drop.other", "sp_delete_schedule": "drop.other", "sp_add_job": "ddl.additive", "sp_add_jobserver": "ddl.additive", "sp_add_schedule": "ddl.additive", "sp_add_jobschedule": "ddl.additive", "sp_attach_schedule": "ddl.additive", "sp_update_job": "server.config",
		"sp_stop_job": "server.config", "sp_updatestats": "ddl.additive", "sp_recompile": "ddl.additive", "sp_refreshview": "ddl.additive",
		"sp_who": "", "sp_who2": "", "sp_columns": "", "sp_tables": "", "sp_lock": "", "sp_spaceused": "", "sp_databases": "", "sp_stored_procedures": "", "sp_pkeys": "", "sp_fkeys": "", "sp_depends": "", "sp_linkedservers": "", "sp_monitor": "", "sp_helpdb": "",
	}
})

// procedurePrefixes maps the beginnings of procedure names to effects, for procedures that are not
// in procedures.
var procedurePrefixes = []struct{ prefix, effect string }{
	{"sp_oa", "server.program"}, {"xp_reg", "server.program"}, {"xp_instance_reg", "server.program"},
	{"sp_drop", "drop.other"}, {"sp_help", ""},
}

// procedure adds the effect of a system procedure, whose arguments are the tokens [args,end). It
// reports whether it knows the procedure.
func (p *parser) procedure(name string, i, args, end int) bool {
	first := p.firstArgument(args, end)
	switch name {
	case "xp_cmdshell":
		p.programText(first, name, args, end)
	case "sp_add_jobstep", "sp_update_jobstep":
		p.jobStep(i, args, end)
		return true
	case "sp_addrolemember":
		if strings.HasPrefix(strings.ToLower(first), "db_owner") {
			p.add("privilege.grant-all", first, i, end)
		} else {
			p.add("privilege.grant", first, i, end)
		}
		return true
	case "sp_configure":
		effect := "server.config"
		for _, o := range [...]string{"xp_cmdshell", "ole automation", "clr ", "external scripts", "ad hoc distributed"} {
			if strings.HasPrefix(strings.ToLower(first), o) {
				effect = "server.program"
			}
		}
		p.add(effect, first, i, end)
		return true
	}
	effect, known := procedures()[name]
	for _, f := range procedurePrefixes {
		if !known && strings.HasPrefix(name, f.prefix) {
			effect, known = f.effect, true
		}
	}
	if effect != "" {
		p.add(effect, first, i, end)
	}
	return known
}

// argument returns the text of the argument @name= or name=> of a call in [lo,hi), or "".
func (p *parser) argument(lo, hi int, name string) string {
	for j := lo; j < hi; j++ {
		if p.op(j+1, "=") && strings.TrimPrefix(p.raw(j), "@") == name {
			return p.argumentValue(j, hi)
		}
	}
	return ""
}

// firstArgument returns the text of the first argument of a call in [lo,hi).
func (p *parser) firstArgument(lo, hi int) string {
	if lo < hi && p.toks[lo].kind == sqlParam && p.op(lo+1, "=") {
		return p.argumentValue(lo, hi)
	}
	if p.op(lo, "(") {
		lo++
	}
	return p.stringAt(lo)
}

// argumentValue returns the text of the named argument at token i: the part after @name= or
// name=>.
func (p *parser) argumentValue(i, hi int) string {
	if i += 2; p.op(i, ">") {
		i++
	}
	text, _ := p.literal(i, p.commaOr(i, hi))
	return text
}

// programText records text that the server runs as a shell command.
func (p *parser) programText(text, via string, lo, hi int) {
	if text != "" {
		lo = min(lo, len(p.toks)-1)
		p.out.Shell = append(p.out.Shell, carried{text, via, p.toks[lo].Start, p.toks[min(max(hi, lo+1), len(p.toks))-1].End})
	}
}

// fileUse records the use of a file by the tokens [lo,hi).
func (p *parser) fileUse(f FileUse, lo, hi int) {
	lo = min(lo, len(p.toks)-1)
	f.Start, f.End = p.toks[lo].Start, p.toks[min(max(hi, lo+1), len(p.toks))-1].End
	p.out.Files = append(p.out.Files, f)
}

// jobStep judges a step of an SQL Server Agent job. It is SQL unless the argument "subsystem"
// names another language.
func (p *parser) jobStep(i, args, end int) {
	command := p.argument(args, end, "command")
	switch strings.ToLower(p.argument(args, end, "subsystem")) {
	case "", "tsql":
		p.add("ddl.additive", "", i, end)
		if command != "" {
			p.nested(command, "job", i, end)
		}
	default:
		p.add("server.program", command, i, end)
		p.programText(command, "job", args, end)
	}
}

// functionEffects maps functions of common servers that do more than compute to their effects. A
// qualified name is looked up first with its package, then without.
var functionEffects = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"pg_terminate_backend": "server.kill-session", "pg_cancel_backend": "server.kill-session",
		"pg_read_file": "server.file-read", "pg_read_binary_file": "server.file-read", "pg_ls_dir": "server.file-read",
		"pg_stat_file": "server.file-read", "lo_import": "server.file-read", "load_file": "server.file-read", "readfile": "server.file-read", "bfilename": "server.file-read",
		"lo_export": "server.file-write", "pg_file_write": "server.file-write", "pg_file_unlink": "server.file-write",
		"pg_file_rename": "server.file-write", "writefile": "server.file-write",
		"utl_file.fremove": "server.file-write", "utl_file.frename": "server.file-write", "utl_file.fcopy": "server.file-write",
		"dbms_xslprocessor.clob2file": "server.file-write", "dbms_advisor.create_file": "server.file-write", "dbms_lob.clob2file": "server.file-write", "dbms_file_transfer.put_file": "server.file-write",
		"dbms_backup_restore.deletefile": "server.file-write", "dbms_cloud.delete_object": "server.file-write", "dbms_lob.fileopen": "server.file-read",
		"aws_s3.query_export_to_s3": "server.export",
		"load_extension":            "server.program", "sys_exec": "server.program", "sys_eval": "server.program", "sys_bineval": "server.program",
		"xp_cmdshell": "server.program", "shell_exec": "server.program", "runjava": "server.program", "dbms_java_test.funcall": "server.program", "dbms_java.grant_permission": "server.program", "aws_lambda.invoke": "server.program", "lambda_async": "server.program", "lambda_sync": "server.program",
		"pg_reload_conf": "server.config", "pg_rotate_logfile": "server.config", "pg_switch_wal": "server.config", "pg_promote": "server.config",
		"pg_stat_reset": "server.config", "pg_drop_replication_slot": "drop.other", "unschedule": "drop.other", "lo_unlink": "delete.scoped", "dbms_scheduler.drop_job": "drop.other", "dbms_scheduler.drop_program": "drop.other", "dbms_job.remove": "drop.other", "dbms_mview.refresh": "ddl.additive",
		"dbms_rls.drop_policy": "privilege.rls-off", "dbms_fga.drop_policy": "privilege.rls-off", "dbms_redact.drop_policy": "privilege.rls-off",
		"dbms_aqadm.purge_queue_table": act.EmptiesQueue, "dbms_aqadm.drop_queue_table": act.EmptiesQueue, "dbms_audit_mgmt.clean_audit_trail": "truncate", "dbms_goldengate_auth.grant_admin_privilege": "privilege.superuser",
		"setval": "update.scoped", "drop_chunks": "delete.scoped", "pg_advisory_lock": "ddl.lock", "drop_distributed_table": "drop.table", "undistribute_table": "ddl.rewrite",
	}
})

// textFunctions lists functions that run SQL in one of their arguments.
var textFunctions = scan.SetOf(`dblink_exec dblink dblink_send_query query_to_xml cursor_to_xml query_to_xml_and_xmlschema ts_stat crosstab openquery openrowset schedule schedule_in_database exec_sql
	execute_sql run_sql run_command_on_workers run_command_on_shards run_command_on_placements sqlite_exec parse exec_ddl_statement dbms_job.submit query xmltable eval
	external_query system.execute system.query execute_query`)

// functions judges the function calls in [lo,hi).
func (p *parser) functions(lo, hi int) {
	for i := lo; i+1 < hi; i++ {
		if p.toks[i].kind != sqlWord && p.toks[i].kind != sqlName || !p.op(i+1, "(") {
			continue
		}
		close := p.closes(i+1, hi)
		if close < 0 {
			close = hi
		}
		p.function(i, close)
	}
}

// function judges the call whose name is token i. close is the index of its closing parenthesis.
func (p *parser) function(i, close int) {
	name := unquote(p.raw(i))
	whole := name
	if p.op(i-1, ".") {
		whole = unquote(p.raw(i-2)) + "." + name
	}
	if p.special(whole, i, close) {
		return
	}
	effect := cmp.Or(functionEffects()[whole], functionEffects()[name])
	switch {
	case effect != "":
		p.serverFile(effect, p.stringAt(i+2), i, close+1)
	case textFunctions.Has(name) || textFunctions.Has(whole):
		for _, text := range p.literals(i, close) {
			if strings.IndexByte(text, ' ') > 0 {
				p.nested(text, name, i, close+1)
			}
		}
	case !pureFunctions.Has(name) && p.toks[i].word == "":
		p.out.ReadOnly = false
	}
}

// serverFile records an effect on a file. If the database is embedded in the client, the file is a
// local file of the user.
func (p *parser) serverFile(effect, path string, i, end int) {
	if p.of.Embedded && path != "" && strings.HasPrefix(effect, "server.file-") {
		p.out.ReadOnly = false
		p.clientFile(path, effect == "server.file-write", i, end)
		return
	}
	p.add(effect, path, i, end)
}

// special judges the functions whose arguments decide the effect. It reports whether it knows the
// function.
func (p *parser) special(name string, i, close int) bool {
	first := p.stringAt(i + 2)
	switch name {
	case "openrowset", "opendatasource":
		path := p.stringAt(i + 3)
		if !p.is(i+2, "bulk") || !serverPath(path) {
			return false
		}
		p.add("server.file-read", path, i, close+1)
	case "periodic.iterate", "periodic.commit", "cypher.run", "cypher.doit", "cypher.runmany", "periodic.submit": // these are functions of the APOC library of Neo4j
		p.nested(strings.Join(p.literals(i, close), " "), name, i, close+1)
	case "dbms_scheduler.create_job", "dbms_scheduler.create_program":
		p.schedulerJob(i, close)
	case "edit": // the SQLite shell writes the first argument to a file and runs the second argument on it
		if texts := p.literals(i, close); len(texts) == 2 {
			p.fileUse(FileUse{Op: act.Overwrite, Path: "/tmp/edit", Writes: texts[0], Via: "edit"}, i, close+1)
			p.programText(texts[1]+" /tmp/edit", "edit", i, close+1)
		}
	case "utl_file.fopen":
		p.opensFile(first, i, close)
	case "set_config", "pg_catalog.set_config":
		list := p.list(i+2, close)
		return len(list) > 1 && p.setting(strings.ToLower(first), p.stringAt(list[1][0]), i, close+1)
	case "executable":
		p.add("server.program", first, i, close+1)
		p.programText(first, name, i+2, close)
	case "file":
		p.clientFile(first, p.is(i-1, "function") && p.head == "insert", i, close)
		p.out.ReadOnly = false
	case "read_text", "read_blob", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson", "sniff_csv":
		if text, ok := p.literal(i+6, close); ok && first == "" && p.raw(i+2) == "getenv" { // for example getenv('HOME') || '/x'
			first = "~" + text
		}
		p.clientFile(first, false, i, close)
	default:
		return false
	}
	return true
}

// opensFile judges utl_file.fopen of Oracle. Its third argument is the mode: read, write or
// append.
func (p *parser) opensFile(file string, i, close int) {
	effect := "server.file-read"
	if list := p.list(i+2, close); len(list) > 2 && strings.ContainsAny(strings.ToLower(p.stringAt(list[2][0])), "wa") {
		effect = "server.file-write"
	}
	p.add(effect, file, i, close+1)
}

// literals returns the known argument texts of the call at token i.
func (p *parser) literals(i, close int) []string {
	var texts []string
	for _, a := range p.list(i+2, close) {
		if text, ok := p.literal(a[0], a[1]); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// serverPath reports whether the path is a file of the server and not an object in an object
// store.
func serverPath(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) || len(path) > 2 && path[1] == ':' && path[2] == '\\'
}

// schedulerJob judges a job of Oracle's scheduler, which runs a program of the server or a PL/SQL
// block.
func (p *parser) schedulerJob(i, close int) {
	kind := strings.ToLower(p.argument(i+2, close, "job_type") + p.argument(i+2, close, "program_type"))
	action := p.argument(i+2, close, "job_action") + p.argument(i+2, close, "program_action")
	if list := p.list(i+2, close); kind == "" && len(list) > 2 { // the call has no names for its arguments
		kind, action = strings.ToLower(p.stringAt(list[1][0])), p.stringAt(list[2][0])
	}
	switch kind {
	case "executable", "external_script":
		p.add("server.program", action, i, close+1)
		p.programText(action, "scheduler", i, close)
	default:
		p.add("ddl.additive", "", i, close+1)
		if action != "" {
			p.nested(action, "scheduler", i, close+1)
		}
	}
}

// clientFile records that a file is read or written. If the path ends in "|", it is a program to
// run.
func (p *parser) clientFile(path string, write bool, lo, hi int) {
	if path == "" || strings.Contains(path, "://") {
		return
	}
	if program, ok := strings.CutSuffix(strings.TrimSpace(path), "|"); ok {
		p.programText(program, "file", lo, hi)
		return
	}
	use := FileUse{Op: act.ReadFile, Path: path, Via: "file"}
	if write {
		use.Op, use.Writes = act.Overwrite, p.written(lo)
	}
	p.fileUse(use, lo, hi)
}

// written returns the string literals from token i to the end of the statement, one per line. They
// are the rows that a table function or COPY writes.
func (p *parser) written(i int) string {
	var out []string
	size := 0
	for j := i; j < len(p.toks) && p.toks[j].kind != sqlEnd && size < 2048; j++ {
		if p.toks[j].kind == sqlString {
			text := p.stringAt(j)
			out = append(out, strings.ReplaceAll(text, `\n`, "\n"))
			size += len(text)
		}
	}
	return strings.Join(out, "\n")
}

// settings maps server settings whose value is a program, a library or a file to their effects.
var settings = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"archive_command": "server.program", "restore_command": "server.program", "archive_cleanup_command": "server.program", "recovery_end_command": "server.program", "ssl_passphrase_command": "server.program",
		"archive_library": "server.program", "shared_preload_libraries": "server.program", "session_preload_libraries": "server.program", "local_preload_libraries": "server.program", "dynamic_library_path": "server.program", "jit_provider": "server.program",
		"general_log_file": "server.file-write", "slow_query_log_file": "server.file-write", "init_connect": "dynamic", "init_slave": "dynamic", "init_replica": "dynamic", "secure_file_priv": "server.config",
		"log_directory": "server.config", "log_filename": "server.config", "skip_grant_tables": "privilege.superuser", "plugin_dir": "server.program",
	}
})

// libraries lists libraries that are commonly preloaded into a PostgreSQL server.
var libraries = scan.SetOf("pg_stat_statements auto_explain pg_cron timescaledb pgaudit citus pg_hint_plan pg_prewarm pg_wait_sampling pg_partman_bgw pgsodium supautils plan_filter pg_net vector pg_repack pg_qualstats pg_stat_kcache decoderbufs wal2json passwordcheck auth_delay credcheck pglogical rds_utils none pg_squeeze pgml vchord")

// setting judges the assignment of a server setting, and reports whether the setting is in
// settings.
func (p *parser) setting(name, value string, i, end int) bool {
	effect := settings()[strings.TrimPrefix(name, "@@global.")]
	if effect == "" {
		return false
	}
	switch {
	case strings.HasSuffix(name, "_libraries") && knownLibraries(value):
		effect = "server.config"
	case strings.HasSuffix(name, "_command") && harmlessCommand(value):
		effect = "server.config"
	case strings.HasSuffix(name, "_command"):
		p.programText(value, name, i, end)
	case effect == "dynamic":
		if value == "" || p.nested(value, name, i, end) {
			effect = "server.config"
		}
	}
	p.add(effect, name, i, end)
	return true
}

// settingValue returns the text after "=", ":=" or TO at token i, or at i itself.
func (p *parser) settingValue(i, end int) string {
	if p.op(i, "=") || p.op(i, ":=") || p.is(i, "to") {
		i++
	}
	text, _ := p.literal(i, end)
	return text
}

func knownLibraries(list string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.Trim(name, " \"'"); name != "" && !libraries.Has(name) {
			return false
		}
	}
	return true
}

// harmlessCommand reports whether an archive command does nothing, or copies the log with a common
// backup tool.
func harmlessCommand(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch scan.Base(first) {
	case "", "true", ":", "wal-g", "wal-e", "pgbackrest", "barman-wal-archive", "barman-wal-restore", "pg_probackup", "pg_archivecleanup", "envdir", "test", "cp", "rsync", "gzip":
		return !strings.ContainsAny(strings.ReplaceAll(text, "&&", ""), ";|&`$") && !strings.Contains(text, "://")
	}
	return false
}
