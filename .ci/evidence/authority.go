package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// serveAuthority serves a time-stamp authority (RFC 3161) whose answers OpenSSL makes with the files
// in a folder (the script run makes them). It prints its URL.
func serveAuthority(folder string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := io.ReadAll(r.Body)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "query"), query, 0o600)
		}
		if err == nil {
			command := exec.CommandContext(r.Context(), "openssl", "ts", "-reply", "-config", "tsa.cnf", "-section", "tsa", "-queryfile", "query", "-signer", "tsa.pem", "-inkey", "tsa.key", "-out", "reply")
			command.Dir = folder
			err = command.Run()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/timestamp-reply")
		http.ServeFile(w, r, filepath.Join(folder, "reply"))
	})))
}
