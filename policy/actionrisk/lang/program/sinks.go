package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
)

// inlineSinks are what called names do, by their last part, in the scripting languages.
// Names of single languages stand in code.json.
var inlineSinks = sinksOf([]struct {
	does  facts.Doing
	names string
}{
	{facts.RunsText, `system popen popen2 popen3 getoutput getstatusoutput shell_exec passthru proc_open execSync create_subprocess_shell`},
	{facts.RunsWords, `create_subprocess_exec check_output check_call Popen Command capture2 capture2e capture3 spawn spawnSync execFile execFileSync execvp execv execlp execl spawnlp spawnv spawnvp spawnve spawnl posix_spawn posix_spawnp pcntl_exec execve execvpe execle execlpe`},
	{facts.DeletesTree, `rmtree rmSync rm_rf rm_r remove_dir remove_entry_secure remove_tree rimraf emptyDirSync removeSync rmdirSync removedirs remove_entry`},
	{facts.WritesFile, `writeFileSync writeFile file_put_contents truncate truncateSync write_text write_bytes`},
	{facts.MovesFile, `rename renameSync move`},
	{facts.ChangesMode, `chmod chmodSync lchmod`},
	{facts.Signals, `kill killpg`},
	{facts.DeletesFile, `unlink unlinkSync remove rm_f`},
	{facts.ReadsFile, `readfile fopen readFileSync readFile file_get_contents readlines read_text read_bytes open createReadStream`},
	{facts.Evaluates, `eval exec Function assert instance_eval runInNewContext runInThisContext`},
	{facts.DropsIndex, `deleteIndex clearIndex clearObjects deleteAllDocuments deleteCollection delete_collection delete_index delete_all_documents delete_by_query deleteByQuery`},
	{facts.Queries, `execute executescript query executeSql`},
})

func sinksOf(rows []struct {
	does  facts.Doing
	names string
}) map[string]facts.Doing {
	out := map[string]facts.Doing{}
	for _, row := range rows {
		for name := range strings.FieldsSeq(row.names) {
			out[name] = row.does
		}
	}
	return out
}

// sinkOf says what a call of a dotted name does.
func (r *inlineRun) sinkOf(name string) facts.Doing {
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
	does facts.Doing
}

// sinkRows are such names; the first row that holds counts, and inlineSinks if none does.
var sinkRows = map[string][]sinkRow{
	"run":     {{"", "sp", facts.RunsWords}, {"python", ".", facts.RunsWords}, {"", "", facts.Nothing}},
	"call":    {{"python", ".", facts.RunsWords}, {"", "", facts.Nothing}},
	"rm":      {{"node", ".", facts.DeletesTree}, {"", "*fs* *promises FileUtils", facts.DeletesTree}},
	"rmdir":   {{"node", ".", facts.DeletesTree}, {"", "*fs*", facts.DeletesTree}},
	"write":   {{"", "File IO", facts.WritesFile}},
	"rename":  {{"", ownFiles, facts.Nothing}},
	"move":    {{"", ownFiles, facts.Nothing}},
	"chmod":   {{"", ownFiles, facts.Nothing}},
	"kill":    {{"", ownFiles, facts.Nothing}},
	"delete":  {{"", "*indices", facts.DropsIndex}, {"", "File Dir", facts.DeletesFile}},
	"sh":      {{"ruby", "-", facts.RunsText}}, // of Rake
	"execute": {{"lua", "", facts.RunsText}},
	"exec":    {{"", "*child_process* cp *os", facts.RunsText}, {"node", ". -", facts.RunsText}, {"perl ruby php", "", facts.RunsText}, {"node", "", facts.Nothing}}, // a regular expression or a query
	"unlink":  {{"perl", "", facts.DeletesFile}},
	"read":    {{"", "File IO", facts.ReadsFile}},
	"spawn":   {{"", "pty", facts.RunsWords}},
	"open":    {{"ruby", ". -", facts.Nothing}},
	"remove":  {{"", "!*os", facts.Nothing}},
}

// ownFiles is everything but what speaks of the machine's own files and processes.
const ownFiles = "!os shutil fs File Process process FileUtils . -"

// commonSink is sinkOf for what the scripting languages have in common.
func commonSink(name, lang string) facts.Doing {
	i := strings.LastIndexAny(name, ".:")
	last, on := name[i+1:], "-"
	if i >= 0 {
		if on = strings.TrimSuffix(name[:i], ":"); on == "" {
			on = "."
		}
	}
	if strings.HasPrefix(on, "subprocess") {
		return facts.RunsWords
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
