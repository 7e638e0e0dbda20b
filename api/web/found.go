package web

// Found is a place that a search in the records of an organization has found.
type Found struct {
	What, Name string // what it is, and its name
	Quoted     bool   // the name is as an agent or a caller wrote it
	Href       string
	Exact      bool // the question names this place and nothing else
}
