module evidence

go 1.26.0

require (
	github.com/cloudevents/sdk-go/v2 v2.16.2
	github.com/fxamacker/cbor/v2 v2.10.0
	github.com/secure-systems-lab/go-securesystemslib v0.11.1
	github.com/transparency-dev/formats v0.1.1
	github.com/transparency-dev/merkle v0.0.2
	github.com/veraison/go-cose v1.3.0
	golang.org/x/mod v0.43.0
)

require (
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.2 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
