//go:build unix

package gate

import (
	"bufio"
	"os"
	"strings"
)

// onTerminal asks the person at the controlling terminal of this process.
func onTerminal(question string) (string, error) {
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
