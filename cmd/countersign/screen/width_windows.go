package screen

import (
	"os"

	"golang.org/x/sys/windows"
)

// columnsOf returns the width that the terminal reports, or 0.
func columnsOf(terminal *os.File) int {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(terminal.Fd()), &info); err != nil {
		return 0
	}
	return int(info.Window.Right-info.Window.Left) + 1
}
