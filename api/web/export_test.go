package web

// Functions that the tests of the templates call directly.
var (
	Ago   = ago
	Short = short
)
