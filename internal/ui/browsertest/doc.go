// Package browsertest uses the pages as people do: Debian's chromium, driven by chromedp, against a real server.
//
//	browser := browsertest.Start(t)
//	page := browser.Open(t, srv.URL+"/ui/")
//	page.SignIn(srv.Key)
//	page.Go("/ui/events")
//	page.Inspect("events")
//
// A page fails its test by itself if it logs an error, breaks its content security policy, or gets an answer above 399 that the test did not
// expect. Inspect looks at it in both themes and at two widths: axe-core must find nothing, nothing may be wider than the screen, and it must
// not be empty. With GODWIT_SCREENSHOTS set to a folder, its pictures are kept there.
//
// Waits are for conditions in the page, without limits that decide a result.
package browsertest
