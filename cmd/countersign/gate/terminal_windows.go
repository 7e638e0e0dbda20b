package gate

import (
	"bufio"
	"os"
	"strings"
)

// onTerminal asks the person at the console of this process.
func onTerminal(question string) (string, error) {
	out, err := os.OpenFile("CONOUT$", os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	defer out.Close()
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if _, err := out.WriteString(question); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	return strings.TrimSpace(line), err
}
