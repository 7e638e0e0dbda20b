package web

// What the tests of templates call directly.
var (
	Ago   = ago
	Short = short
)
