package act

// Op is what an effect does to a file or to the machine.
type Op uint8

// The effects that texts of every language have, whatever they call them: a function, a
// method, a module's state, a command of an editor.
const (
	DeleteFile Op = iota
	DeleteFileAnyway
	DeleteTree
	ReadFile
	MoveFile // the second object is where to; so for the next three
	CopyFile
	CopyTree
	LinkFile
	Unpack // into a folder
	ChangeMode
	ChangeOwner
	Fetch // an address
	KillAll
	Overwrite
	AppendTo
)

// Effect is one thing that a text does, in whatever language it says so.
type Effect struct {
	Op       Op
	On       []Word // what it is done to, as the text gives it
	Mode     string // of ChangeMode, as chmod takes it; of ChangeOwner, who
	Writes   string // what Overwrite and AppendTo write, if that is known
	From, To int    // where its source says so
}

// programs are the command lines of the same effect. The rules speak of programs, and
// what a rule says is promised; so that is the form in which effects are judged.
var programs = [...][]string{DeleteFile: {"rm"}, DeleteFileAnyway: {"rm", "-f"}, DeleteTree: {"rm", "-rf"}, ReadFile: {"cat"},
	MoveFile: {"mv"}, CopyFile: {"cp"}, CopyTree: {"cp", "-rT"}, Unpack: {"tar", "-xf", "-", "-C"}, LinkFile: {"ln", "-s"}, ChangeMode: {"chmod"}, ChangeOwner: {"chown"}, Fetch: {"curl"}, KillAll: {"kill", "-9", "-1"}, Overwrite: {">"}, AppendTo: {">>"}}

// Argv are the words of the program that has the effect, where in a command src stands.
func (f *Effect) Argv(src *Source) []Word {
	var out []Word
	for _, word := range programs[f.Op] {
		out = append(out, Word{Text: word, At: -1, Span: src.Span})
	}
	if f.Mode != "" {
		out = append(out, Word{Text: f.Mode, At: -1, Span: src.Span})
	}
	return append(out, f.On...)
}
