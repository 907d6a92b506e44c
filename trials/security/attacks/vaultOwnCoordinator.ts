import { createTestCoordinator } from '../../../services/enclave/test/coordinator.ts'
import type { AttackContext, AttackResult } from '../attack.ts'
import { createCaller } from '../createCaller.ts'
import { signHonestly, toCookie } from '../vaults/callSign.ts'
import { askEnclave, listEnclaveTries, toHonestItem } from '../vaults/enclaveForgeries.ts'
import { readSession, setUpVaults } from '../vaults/setUpVaults.ts'
import { createTally, SIGNED } from '../vaults/tally.ts'

const TRIES = { full: 4000, short: 200 } as const

/**
 * An operator runs code of their own in the place of the coordinator: they have every session, and ask the enclave for whatever they
 * like. Nothing above the threshold may be signed.
 */
export async function vaultOwnCoordinator({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const vaults = await setUpVaults(target)
  const session = await readSession(target, target.alice)
  const own = await readSession(target, target.mallory)
  const caller = createCaller({ port: target.port })
  const seen = await signHonestly({ caller, ...toCookie(target) }, vaults).finally(() => caller.close())
  const enclave = { url: target.backend.enclaveUrl, coordinator: createTestCoordinator() }
  const signHonest = async () => {
    const [outcome] = await askEnclave(enclave, [toHonestItem(vaults, session)], [vaults.vault.text])
    return outcome === SIGNED ? [] : [`what was approved is refused: ${outcome}`]
  }
  const tally = createTally()
  const faults = await signHonest()
  const tries = listEnclaveTries(vaults, { session, own, random, seen })
  for (let made = 0; made < TRIES[size]; made++) {
    const { name, make } = tries[made % tries.length] as (typeof tries)[number]
    const { item, policies } = make()
    const [outcome = ''] = await askEnclave(enclave, [item], policies)
    tally.add(name, outcome)
    if (made % 1000 === 0 && made > 0) say(`${made} of ${TRIES[size]}`)
  }
  faults.push(...(await signHonest()))
  return {
    name: 'vault: own coordinator',
    tried: tally.tried(),
    figures: tally.figures(),
    faults: [...tally.faults(), ...faults],
  }
}
