import { isTdPlatform, type TdPlatform } from '@countersign/attestation'
import { normaliseHex } from './measurementText.ts'

/** How people write a machine, as an option or in a form. */
export const PLATFORM_FORM = 'fmspc:HEX of 6 bytes, or ppid:HEX or platformInstanceId:HEX of 16'

/** A machine as `--platform` takes it. */
export function toPlatformText(platform: TdPlatform): string {
  return Object.entries(platform).flat().join(':')
}

/** The reverse; undefined where it is none. */
export function parsePlatformText(text: string): TdPlatform | undefined {
  const [name = '', ...ids] = text.split(':')
  const platform = { [name]: normaliseHex(ids.join(':')) }
  return isTdPlatform(platform) ? platform : undefined
}
