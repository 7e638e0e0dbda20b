package api_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// window is a real browser without a visible window.
type window struct {
	t    *testing.T
	ctx  context.Context
	site *site
}

// openWindow starts a browser if REQUIRE_BROWSER is set, as .ci/console/run does. Otherwise it
// skips the test, because these tests take a quarter of the package's time and not every machine
// has a browser.
func (s *site) openWindow(t *testing.T) *window {
	t.Helper()
	if os.Getenv("REQUIRE_BROWSER") == "" {
		fmt.Fprintln(os.Stderr, "SKIPPED: .ci/console/run walks through the pages with a browser")
		t.SkipNow()
	}
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Fatal("no browser: apt-get install chromium")
	}
	profile, err := os.MkdirTemp("", "walk")
	if err != nil {
		t.Fatal(err)
	}
	// The browser's child processes may still write for a moment, so t.TempDir could fail the
	// test.
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.CombinedOutput(io.Discard))
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	patience := 5 * time.Minute
	if os.Getenv("SCREENSHOTS") != "" {
		patience = 50 * time.Minute
	}
	ctx, end = context.WithTimeout(ctx, patience)
	t.Cleanup(end)
	w := &window{t, ctx, s}
	w.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate("about:blank"))
	return w
}

// do runs steps, and fails the test if one fails.
func (w *window) do(steps ...chromedp.Action) {
	w.t.Helper()
	if err := chromedp.Run(w.ctx, steps...); err != nil {
		var text, at string
		_ = chromedp.Run(w.ctx, chromedp.Location(&at), chromedp.Text("body", &text, chromedp.ByQuery))
		w.t.Fatalf("%v\nat %s:\n%s", err, at, text)
	}
}

// open opens a page of the site.
func (w *window) open(path string) {
	w.t.Helper()
	w.do(chromedp.Navigate(w.site.URL+path), chromedp.WaitReady("main", chromedp.ByQuery))
}

// as signs the window in with the session of b, which is a browser without a window.
func (w *window) as(b *browser) {
	w.t.Helper()
	home, err := url.Parse(w.site.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(home) {
		w.do(network.SetCookie(c.Name, c.Value).WithURL(w.site.URL).WithHTTPOnly(true).WithSameSite(network.CookieSameSiteLax))
	}
}

// see waits until the page contains a text. It waits as long as the window is open. During a
// navigation there may be no page to read.
func (w *window) see(text string) {
	w.t.Helper()
	var shown string
	for w.ctx.Err() == nil {
		err := chromedp.Run(w.ctx, chromedp.WaitReady("body", chromedp.ByQuery), chromedp.Evaluate(`document.body ? document.body.innerText : ""`, &shown))
		if err == nil && strings.Contains(shown, text) {
			return
		}
		_ = chromedp.Run(w.ctx, chromedp.Sleep(50*time.Millisecond)) // poll, because there is no event for a changed text
	}
	w.t.Fatalf("the page lacks %q:\n%s", text, shown)
}

// failures starts to collect the errors in the browser's console. The returned function lists
// them.
func (w *window) failures() func() []string {
	var mu sync.Mutex
	var said []string
	chromedp.ListenTarget(w.ctx, func(event any) {
		if e, is := event.(*log.EventEntryAdded); is && e.Entry.Level == log.LevelError {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, e.Entry.URL+": "+e.Entry.Text)
		}
	})
	w.do(log.Enable())
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(said)
	}
}

// press clicks the button or link with this text.
func (w *window) press(text string) {
	w.t.Helper()
	w.do(chromedp.Click(fmt.Sprintf(`//main//*[self::a or self::button or self::summary][contains(normalize-space(.), %q)]`, text), chromedp.BySearch))
}

// fill writes a text into the field with this name.
func (w *window) fill(name, text string) {
	w.t.Helper()
	w.do(chromedp.SetValue(fmt.Sprintf(`main [name=%q]:not([type=hidden])`, name), text, chromedp.ByQuery))
}

// shoot saves screenshots of a page in each width and color scheme to the folder SCREENSHOTS, if
// it is set.
func (w *window) shoot(name string) {
	w.t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	for _, width := range []int64{1440, 768, 360} {
		for _, scheme := range []string{"light", "dark"} {
			var picture []byte
			w.do(chromedp.EmulateViewport(width, 900),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.FullScreenshot(&picture, 100))
			file := filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
			if err := os.WriteFile(file, picture, 0o644); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.do(chromedp.EmulateViewport(1280, 900))
}

// fits fails the test if a page is wider than the screen of a phone.
func (w *window) fits(path string) {
	w.t.Helper()
	w.do(chromedp.EmulateViewport(360, 800))
	w.open(path)
	w.within(path, 360)
	w.do(chromedp.EmulateViewport(1280, 900))
}

// within fails the test if the visible content is wider than the window.
func (w *window) within(what string, window int) {
	w.t.Helper()
	var width int
	w.do(chromedp.Evaluate(`document.documentElement.scrollWidth`, &width))
	if width > window {
		var wide string
		w.do(chromedp.Evaluate(fmt.Sprintf(`[...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > %d && !e.closest(".places, pre.wide, .diff")).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join("\n")`, window+1), &wide))
		w.t.Errorf("%s is %d pixels wide in %d: %s", what, width, window, wide)
	}
}
