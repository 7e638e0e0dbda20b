package op

import "net/http"

// Table is every operation of the service, in the order of the documents. The rooms that
// describe all operations hold a pointer to it: it is complete before the first request.
type Table []*Operation

// Find returns the operation with an id, and nil if there is none.
func (t *Table) Find(id string) *Operation {
	for _, o := range *t {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// Services returns the operations that sell a service.
func (t *Table) Services() (list []*Operation) {
	for _, o := range *t {
		if o.Service != nil {
			list = append(list, o)
		}
	}
	return list
}

// Complete sets what a declaration leaves out to what most operations have.
func (o *Operation) Complete() {
	if o.Limit == 0 {
		o.Limit = LimitOther
	}
	if o.Success == 0 {
		o.Success = http.StatusOK
	}
	o.Errors = o.Refusals()
	if o.Media == "" {
		o.Media = "application/json"
	}
}
