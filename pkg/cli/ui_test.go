package cli

import (
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestIntroduction(t *testing.T) {
	clitest.Golden(t, "ui", introduction("http://127.0.0.1:8080/session/open?key=KEY"))
}
