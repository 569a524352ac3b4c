package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// picture is a page for docs/dashboard.md.
type picture struct {
	name, path, scheme string
	width, height      int64
}

var _ = Describe("the pictures of the documentation", Label("pictures"), func() {
	It("show every page", func() {
		if pictures == "" {
			return // `make screenshots` names the folder
		}
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for _, p := range []picture{
			{"fleet", "/", "light", 1200, 860}, {"fleet-dark", "/", "dark", 1200, 860}, {"fleet-narrow", "/", "light", 360, 760},
			{"why", "/clusters/cluster-01/addons/shop", "light", 1200, 760}, {"cluster", "/clusters/cluster-01", "light", 1200, 900},
			{"instance", "/clusters/cluster-01/instances/kafka", "light", 1200, 900}, {"addon", "/addons/kafka", "light", 1200, 900},
		} {
			take(page, address, p)
		}
	})

	It("show every page on a phone and on a 4K screen, for a review", func() {
		if review == "" {
			return // `make screenshots REVIEW=FOLDER` names the folder
		}
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		for i, path := range everyPage {
			open(page, address, path)
			for _, size := range [][2]int64{{360, 760}, {3840, 2160}} {
				Expect(chromedp.Do(page, appearance(size[0], "light"))).To(Succeed())
				height, err := chromedp.Run(page, chromedp.Evaluate[int64]("document.documentElement.scrollHeight"))
				Expect(err).NotTo(HaveOccurred())
				Expect(chromedp.Do(page, chromedp.EmulateViewport(size[0], max(height, size[1])))).To(Succeed())
				image, err := chromedp.Run(page, chromedp.CaptureScreenshot())
				Expect(err).NotTo(HaveOccurred())
				name := fmt.Sprintf("%02d-%.40s-%d.png", i, strings.Trim(unsafeInName.ReplaceAllString(path, "-"), "-"), size[0])
				Expect(os.WriteFile(filepath.Join(review, name), image, 0o644)).To(Succeed())
			}
		}
	})
})

// unsafeInName matches characters of paths that names of files do not have.
var unsafeInName = regexp.MustCompile(`[^a-z0-9]+`)

func take(page context.Context, address string, p picture) {
	GinkgoHelper()
	Expect(chromedp.Do(page,
		chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.scheme}},
			})
			return err
		}),
		chromedp.EmulateViewport(p.width, p.height),
		chromedp.Navigate(address+p.path), chromedp.WaitVisible("#live.live"),
	)).To(Succeed())
	image, err := chromedp.Run(page, chromedp.CaptureScreenshot())
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(pictures, p.name+".png"), image, 0o644)).To(Succeed())
}
