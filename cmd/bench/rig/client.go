package rig

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// Client is an HTTP/1.1 client with one keep-alive connection. It does only what a load generator
// needs: client and server share the machine, so the processor time of a complete client would
// reduce the measured rate of the server.
type Client struct {
	conn   net.Conn
	answer *bufio.Reader
	buffer []byte
}

// NewClient connects to an address.
func NewClient(address string) (*Client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, answer: bufio.NewReaderSize(conn, 16<<10)}, nil
}

// Client returns a new connection to the service.
func (b *Service) Client() (*Client, error) {
	return NewClient(strings.TrimPrefix(b.Base, "http://"))
}

// Close closes the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// Post sends a body and returns the status and the body of the answer, which is valid until the
// next call. headers has complete lines that end with CRLF.
func (c *Client) Post(path, headers string, body []byte) (status int, answer []byte, err error) {
	c.buffer = fmt.Appendf(c.buffer[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n",
		path, c.conn.RemoteAddr(), len(body), headers)
	c.buffer = append(c.buffer, body...)
	if _, err := c.conn.Write(c.buffer); err != nil {
		return 0, nil, err
	}
	line, err := c.answer.ReadSlice('\n')
	if err != nil || len(line) < len("HTTP/1.1 200") {
		return 0, nil, errors.Join(errors.New("no status line"), err)
	}
	if status, err = strconv.Atoi(string(line[len("HTTP/1.1 "):len("HTTP/1.1 200")])); err != nil {
		return 0, nil, err
	}
	length := -1
	for {
		if line, err = c.answer.ReadSlice('\n'); err != nil {
			return 0, nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); string(name) == "Content-Length" {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, nil, err
			}
		}
	}
	if length < 0 {
		return 0, nil, errors.New("an answer without Content-Length")
	}
	c.buffer = append(c.buffer[:0], make([]byte, length)...)
	_, err = io.ReadFull(c.answer, c.buffer)
	return status, c.buffer, err
}
