package op

import "net/http"

// Table lists every operation of the service, in the order of the documents. Types that describe
// all operations hold a pointer to it. It is complete before the first request.
type Table []*Operation

// Find returns the operation with this id, or nil.
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

// Complete sets the defaults of fields that a declaration leaves empty.
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
