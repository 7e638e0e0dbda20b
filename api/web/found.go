package web

// Found is one result of a search in the records of an organization.
type Found struct {
	What, Name string // type of the record, such as "Token", and its name
	Quoted     bool   // an agent or a caller wrote the name
	Href       string
	Exact      bool // the question matches this record exactly
}
