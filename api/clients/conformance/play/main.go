// Command play serves the conformance cases for the drivers of clients in other languages. It
// prints its address, and stops at the end of its standard input.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/countersign/countersign/api/clients/conformance"
)

func main() {
	log.SetFlags(0)
	s, err := conformance.NewServer()
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { // stops with the program
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(server.Serve(listener))
}
