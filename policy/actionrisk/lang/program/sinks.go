package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
)

// What a called name does, by its last part. The value says how its arguments
// are taken: 's' shell text, 'v' words of a command, 'd' deletes a tree,
// 'u' deletes a file, 'r' reads a file, 'e' evaluates text, 'q' SQL,
// 'n' deletes an index or a collection of a service, 'w' writes over a file, 'm'
// moves one, 'c' changes its mode, 'k' sends a signal, 'l' runs a file or an address,
// 'a' saves an address to a file, 'p' runs what a pickled text says, 'D' deletes a
// tree if its arguments say so. Names of single languages stand in code.json.
var inlineSinks = map[string]byte{
	"system": 's', "popen": 's', "popen2": 's', "popen3": 's', "getoutput": 's', "getstatusoutput": 's', "shell_exec": 's', "passthru": 's', "proc_open": 's',
	"execSync": 's', "create_subprocess_shell": 's', "create_subprocess_exec": 'v', "check_output": 'v', "check_call": 'v', "Popen": 'v', "Command": 'v', "capture2": 'v', "capture2e": 'v', "capture3": 'v',
	"spawn": 'v', "spawnSync": 'v', "execFile": 'v', "execFileSync": 'v', "execvp": 'v', "execv": 'v', "execlp": 'v', "execl": 'v', "spawnlp": 'v',
	"rmtree": 'd', "rmSync": 'd', "rm_rf": 'd', "rm_r": 'd', "remove_dir": 'd', "remove_entry_secure": 'd', "remove_tree": 'd', "rimraf": 'd', "emptyDirSync": 'd', "removeSync": 'd', "rmdirSync": 'd', "removedirs": 'd', "remove_entry": 'd',
	"writeFileSync": 'w', "writeFile": 'w', "file_put_contents": 'w', "truncate": 'w', "truncateSync": 'w', "write_text": 'w', "write_bytes": 'w',
	"rename": 'm', "renameSync": 'm', "move": 'm', "chmod": 'c', "chmodSync": 'c', "lchmod": 'c', "kill": 'k', "killpg": 'k',
	"spawnv": 'v', "spawnvp": 'v', "spawnve": 'v', "spawnl": 'v', "posix_spawn": 'v', "posix_spawnp": 'v', "pcntl_exec": 'v', "execve": 'v', "execvpe": 'v', "execle": 'v', "execlpe": 'v',
	"unlink": 'u', "unlinkSync": 'u', "remove": 'u', "rm_f": 'u',
	"readfile": 'r', "fopen": 'r', "readFileSync": 'r', "readFile": 'r', "file_get_contents": 'r', "readlines": 'r', "read_text": 'r', "read_bytes": 'r', "open": 'r', "createReadStream": 'r',
	"eval": 'e', "exec": 'e', "Function": 'e', "assert": 'e', "instance_eval": 'e', "runInNewContext": 'e', "runInThisContext": 'e',
	"deleteIndex": 'n', "clearIndex": 'n', "clearObjects": 'n', "deleteAllDocuments": 'n', "deleteCollection": 'n', "delete_collection": 'n', "delete_index": 'n', "delete_all_documents": 'n', "delete_by_query": 'n', "deleteByQuery": 'n',
	"execute": 'q', "executescript": 'q', "query": 'q', "executeSql": 'q',
}

// sinkOf says what a call of a dotted name does.
func (r *inlineRun) sinkOf(name string) byte {
	name = strings.TrimSuffix(name, "!")
	if n, ok := facts.Named(r.sh.Env.Code().Calls, name, r.lang); ok {
		return n.Does
	}
	return commonSink(name, r.lang)
}

// sinkRow is a name whose meaning depends on the language, or on what it is called on.
type sinkRow struct {
	langs string // any if none
	// on are patterns of what stands before its last point, any if none: "*fs*"; "." is a
	// method of what a call gave, "-" a function by itself. "!" in front: none of them.
	on   string
	does byte // 0: nothing
}

// sinkRows are such names; the first row that holds counts, and inlineSinks if none does.
var sinkRows = map[string][]sinkRow{
	"run":     {{"", "sp", 'v'}, {"python", ".", 'v'}, {"", "", 0}},
	"call":    {{"python", ".", 'v'}, {"", "", 0}},
	"rm":      {{"node", ".", 'd'}, {"", "*fs* *promises FileUtils", 'd'}},
	"rmdir":   {{"node", ".", 'd'}, {"", "*fs*", 'd'}},
	"write":   {{"", "File IO", 'w'}},
	"rename":  {{"", ownFiles, 0}},
	"move":    {{"", ownFiles, 0}},
	"chmod":   {{"", ownFiles, 0}},
	"kill":    {{"", ownFiles, 0}},
	"delete":  {{"", "*indices", 'n'}, {"", "File Dir", 'u'}},
	"sh":      {{"ruby", "-", 's'}}, // of Rake
	"execute": {{"lua", "", 's'}},
	"exec":    {{"", "*child_process* cp *os", 's'}, {"node", ". -", 's'}, {"perl ruby php", "", 's'}, {"node", "", 0}}, // a regular expression or a query
	"unlink":  {{"perl", "", 'u'}},
	"read":    {{"", "File IO", 'r'}},
	"spawn":   {{"", "pty", 'v'}},
	"open":    {{"ruby", ". -", 0}},
	"remove":  {{"", "!*os", 0}},
}

// ownFiles is everything but what speaks of the machine's own files and processes.
const ownFiles = "!os shutil fs File Process process FileUtils . -"

// commonSink is sinkOf for what the scripting languages have in common.
func commonSink(name, lang string) byte {
	i := strings.LastIndexAny(name, ".:")
	last, on := name[i+1:], "-"
	if i >= 0 {
		if on = strings.TrimSuffix(name[:i], ":"); on == "" {
			on = "."
		}
	}
	if strings.HasPrefix(on, "subprocess") {
		return 'v'
	}
	for _, row := range sinkRows[last] {
		if row.holds(on, lang) {
			return row.does
		}
	}
	return inlineSinks[last]
}

func (row *sinkRow) holds(on, lang string) bool {
	if row.langs != "" && !slices.Contains(strings.Fields(row.langs), lang) {
		return false
	}
	patterns, none := strings.CutPrefix(row.on, "!")
	return patterns == "" || none != slices.ContainsFunc(strings.Fields(patterns), func(p string) bool { return act.MatchWord(p, on) })
}
