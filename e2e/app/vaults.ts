import { ServiceClient } from '@countersign/sdk/client'
import * as vaults from '@countersign/sdk/vaults/client'
import { config } from './config.ts'

/** Without React, the page's values are available in the console. */
const page = { client: new ServiceClient(config), ...vaults }

declare global {
  interface Window {
    vaults: typeof page
  }
}

window.vaults = page
