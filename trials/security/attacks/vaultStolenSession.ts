import type { AttackContext, AttackResult } from '../attack.ts'
import { createCaller } from '../createCaller.ts'
import { callSign, createLarge, signHonestly, toCookie } from '../vaults/callSign.ts'
import { listForgeries } from '../vaults/forgeApprovals.ts'
import { approve, createPayment, setUpVaults, THRESHOLD_WEI } from '../vaults/setUpVaults.ts'
import { createTally } from '../vaults/tally.ts'

const TRIES = { full: 4000, short: 150 } as const
const AT_ONCE = 16

/** A thief has the session of a vault's owner, and everything but the passkeys. Nothing above the threshold may be signed. */
export async function vaultStolenSession({ target, size, random, say }: AttackContext): Promise<AttackResult> {
  const vaults = await setUpVaults(target)
  const { vault, twin, twofold, scheduled } = vaults
  const caller = createCaller({ port: target.port, connections: AT_ONCE })
  const as = { caller, ...toCookie(target) }
  const tally = createTally()
  const codes = new Set<string>()
  try {
    const seen = await signHonestly(as, vaults)
    const forgeries = listForgeries(vaults, { random, seen })
    const typedData = { domain: { name: 'x' }, types: { A: [{ name: 'a', type: 'string' }] }, primaryType: 'A' }
    /** Other ways in than an approval that is none. */
    const ways: Record<string, () => Promise<string>> = {
      'the metadata of a small payment': () => {
        const { digest } = createLarge(random)
        const { txMetadata } = createPayment(THRESHOLD_WEI)
        return callSign(as, { digest, txMetadata, wallet: vault.address })
      },
      'the vault of another user': () => callSign(as, { ...createLarge(random), wallet: twin.address }),
      'one approval of two': () => {
        const payment = createLarge(random)
        const approvals = [approve({ digest: payment.digest, vault: twofold, by: random.below(2) })]
        return callSign(as, { ...payment, wallet: twofold.address, approvals })
      },
      'before its time': () => callSign(as, { ...createLarge(random), wallet: scheduled.address }),
      'a message': () => callSign(as, { message: '0x00', wallet: vault.address }, '/sign/message'),
      'typed data': () =>
        callSign(as, { ...typedData, message: { a: 'b' }, wallet: vault.address }, '/sign/typed-data'),
      'code for the account': () => {
        const authorization = { chainId: 1, address: `0x${'77'.repeat(20)}`, nonce: random.below(1000) }
        return callSign(as, { ...authorization, wallet: vault.address }, '/sign/authorization')
      },
    }
    const tries = [
      ...forgeries.map(({ name, forge }) => ({
        name,
        run() {
          const payment = createLarge(random)
          return callSign(as, { ...payment, wallet: vault.address, approvals: forge(payment.digest) })
        },
      })),
      ...Object.entries(ways).map(([name, run]) => ({ name, run })),
    ]
    for (let made = 0; made < TRIES[size]; made += AT_ONCE) {
      const some = Array.from({ length: Math.min(AT_ONCE, TRIES[size] - made) }, (_, index) => made + index)
      const chosen = some.map((index) => tries[index % tries.length] as (typeof tries)[number])
      const outcomes = await Promise.all(chosen.map(({ run }) => run()))
      for (const [index, outcome] of outcomes.entries()) {
        tally.add(chosen[index]?.name ?? '', outcome)
        codes.add(outcome)
      }
      if (made % 1600 === 0 && made > 0) say(`${made} of ${TRIES[size]}`)
    }
    await signHonestly(as, vaults, 1)
  } finally {
    caller.close()
  }
  // An attack that meets an error of ours is not refused by a rule.
  const odd = ['internal', 'enclave_unavailable', 'attestation_invalid'].filter((code) => codes.has(code))
  return {
    name: 'vault: stolen session',
    tried: tally.tried(),
    figures: tally.figures(),
    faults: [...tally.faults(), ...odd.map((code) => `answered ${code}`)],
  }
}
