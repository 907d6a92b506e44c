import { ServiceClient } from '@countersign/sdk/client'
import * as vaults from '@countersign/sdk/vaults/client'
import { config } from './config.ts'

/** As in a page without React: what it has is at hand in the console. */
const page = { client: new ServiceClient(config), ...vaults }

declare global {
  interface Window {
    vaults: typeof page
  }
}

window.vaults = page
