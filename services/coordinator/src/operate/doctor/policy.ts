import { codeRegisters, findOpenRegisters } from '@countersign/attestation'
import type { EnclavePolicy } from '../../sign/enclave/keyEnclave.ts'
import { type Check, type Context, type Finding, fault, ok, skipped, warning } from './check.ts'

const MEND = 'Measure your own build, and write what was measured, as docs/operations.md#policies shows.'

/** What the reader of the settings takes for a policy may still be nobody's. */
export function createPolicyChecks({ env, subject }: Context): Check[] {
  return [
    {
      name: 'policy',
      settings: /^(ENCLAVE_POLICY_FILE|MOCK_ATTESTATION)$/,
      async run() {
        const { coordinator } = subject
        if (coordinator === undefined) return skipped('a worker judges no enclave')
        if (!env.ENCLAVE_POLICY_FILE) return ok('none is needed for simulated silicon')
        return judgePolicy(coordinator.enclavePolicy)
      },
    },
  ]
}

export function judgePolicy(policy: EnclavePolicy): Finding | Finding[] {
  const { measurements = [], configHashes = [], events } = policy
  const found: Finding[] = []
  for (const [index, measurement] of measurements.entries()) {
    const values = codeRegisters.flatMap((name) => measurement[name] ?? [])
    // A register that a guest does not use is all zeros, but the firmware is always there.
    const isPlaceholder = values.every(isZeros) || values.some((value) => isOneByte(value) && !isZeros(value))
    if (isPlaceholder || (measurement.mrTd !== undefined && isZeros(measurement.mrTd))) {
      found.push(fault(`measurements[${index}] of the enclave policy is a placeholder`, MEND))
    }
    const open = findOpenRegisters(measurement, events)
    if (open.length > 0) {
      found.push(warning(`measurements[${index}] leaves out ${open.join(', ')}: production refuses that`, MEND))
    }
  }
  for (const [index, hash] of configHashes.entries()) {
    if (!isOneByte(hash)) continue
    const mend = 'Write the configHash that the enclave logs at its start.'
    found.push(fault(`configHashes[${index}] of the enclave policy is a placeholder`, mend))
  }
  if (found.length > 0) return found
  return ok(`${measurements.length} measurement(s), ${configHashes.length} configuration hash(es)`)
}

function isZeros(hex: string): boolean {
  return /^0*$/.test(hex)
}

function isOneByte(hex: string): boolean {
  return hex === hex.slice(0, 2).repeat(hex.length / 2)
}
