import { type Browser, chromium } from 'playwright'
import { chromiumArgs } from '../scripts/findChromium.ts'

export function startBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: [...chromiumArgs] })
}
