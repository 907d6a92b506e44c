import type { ReleaseRequest } from '@countersign/protocol'
import type { Decorate, Dependencies } from '../src/dependencies.ts'
import type { Block } from '../src/publish/ipfs/pinner.ts'

/** Where a process can be killed: before or after a call of a dependency, optionally only with certain parameters. */
export type CrashPoint = {
  part: keyof Dependencies | 'pinning' | 'publications'
  method: string
  when: 'before' | 'after'
  isAt?(...parameters: never[]): boolean
}

/** The stages of a signature and its proof, in order. */
export const crashPoints = {
  'after entropy': { part: 'entropy', method: 'take', when: 'after' },
  'before the enclave': { part: 'enclave', method: 'signItems', when: 'before' },
  'after the enclave': { part: 'enclave', method: 'signItems', when: 'after' },
  'before the commit': { part: 'store', method: 'insertSignings', when: 'before' },
  'after the commit, before the answer': { part: 'store', method: 'insertSignings', when: 'after' },
  'before the receipt is frozen': { part: 'pinning', method: 'freezeReceipt', when: 'before' },
  'after the receipt is frozen': { part: 'pinning', method: 'freezeReceipt', when: 'after' },
  'after a pin': { part: 'pinner', method: 'pin', when: 'after' },
  'after the read back': { part: 'pinner', method: 'read', when: 'after' },
  'before pending_onchain': { part: 'pinning', method: 'completePin', when: 'before' },
  'after pending_onchain': { part: 'pinning', method: 'completePin', when: 'after' },
  'before the claim': { part: 'publications', method: 'claim', when: 'before' },
  'after the claim, before it is sent': { part: 'publications', method: 'claim', when: 'after' },
  'after it is sent, before that is written': { part: 'chain', method: 'send', when: 'after' },
  'after mined, before status': { part: 'publications', method: 'confirm', when: 'before' },
  'after status': { part: 'publications', method: 'confirm', when: 'after' },
} as const satisfies Record<string, CrashPoint>

const isForStatements = ({ leaves = [] }: ReleaseRequest) => leaves.length > 0
const isAcknowledging = ({ acknowledge = [] }: ReleaseRequest) => acknowledge.length > 0

/** Between the enclave and the commit, if the enclave has a log. */
export const logCrashPoints = {
  'after the entries are written': { part: 'logService', method: 'record', when: 'after' },
  'after the witnesses': { part: 'logService', method: 'cosign', when: 'after' },
  'before the release': { part: 'enclave', method: 'release', when: 'before', isAt: isForStatements },
  'after the release': { part: 'enclave', method: 'release', when: 'after', isAt: isForStatements },
  'after the acknowledgement': { part: 'enclave', method: 'release', when: 'after', isAt: isAcknowledging },
} as const satisfies Record<string, CrashPoint>

const isAnchor = ({ bytes }: Block) => Buffer.from(bytes).includes('"countersign-anchor/1"')

/** Before the claim, if checkpoints are published instead of events. */
export const checkpointCrashPoints = {
  'before the anchor is pinned': { part: 'pinner', method: 'pin', when: 'before', isAt: isAnchor },
  'after the anchor is pinned': { part: 'pinner', method: 'pin', when: 'after', isAt: isAnchor },
} as const satisfies Record<string, CrashPoint>

export type CrashPointName = keyof typeof crashPoints | keyof typeof logCrashPoints | keyof typeof checkpointCrashPoints

/** Dependencies that kill or freeze this process once, with a signal that can't be handled. A frozen process continues when it is woken. */
export function createCrash({ part, method, when, isAt }: CrashPoint, signal: 'SIGKILL' | 'SIGSTOP'): Decorate {
  let isDone = false
  const die = () => {
    if (isDone) return
    isDone = true
    process.kill(process.pid, signal)
    // Runs no further code: the signal arrives at any moment.
    while (signal === 'SIGKILL');
  }
  const wrap = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get(object, name, receiver) {
        const value = Reflect.get(object, name, receiver)
        if (name !== method || typeof value !== 'function') return value
        return async (...parameters: unknown[]) => {
          if (isAt !== undefined && !isAt(...(parameters as never[]))) return value.apply(object, parameters)
          if (when === 'before') die()
          const result = await value.apply(object, parameters)
          die()
          return result
        }
      },
    })
  return (name, original) => {
    if (name === part) return wrap(original)
    if (name === 'pipeline' && (part === 'pinning' || part === 'publications')) {
      const pipeline = original as Dependencies['pipeline']
      return { ...pipeline, [part]: wrap(pipeline[part]) } as typeof original
    }
    return original
  }
}
