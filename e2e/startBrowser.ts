import { type Browser, chromium } from 'playwright'

export function startBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    // Containers give no user namespaces to the sandbox; only our own pages are opened in this browser.
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
}
