//go:build unix

package guard

import (
	"bufio"
	"os"
	"strings"
)

// AskOnTerminal asks the person at the controlling terminal of this process.
func AskOnTerminal(question string) (string, error) {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer terminal.Close()
	if _, err := terminal.WriteString(question); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(terminal).ReadString('\n')
	return strings.TrimSpace(line), err
}
