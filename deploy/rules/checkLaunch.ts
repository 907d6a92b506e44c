import { posix } from 'node:path'
import { findUnmeasured } from '../../packages/service/src/readEnv.ts'
import { launchedBy } from '../launcher/launchers.ts'
import { type Container, imageOf, isSecretName } from './containers.ts'

/** Where files may be put into our containers: no code is looked for there, and nothing that was measured is covered. */
const OPEN_PLACES = /^(\/run\/.+|\/backup|\/sys\/kernel\/config|\/var\/run\/dstack\.sock)$/

/** What reaches a container from outside: nothing but what the launcher of its image lets through. One sentence for each fault. */
export function checkLaunch(container: Container): string[] {
  const { args, env, mounts } = container
  const names = Object.keys(env)
  const image = imageOf(container)
  if (image === undefined) return findUnmeasured(env).map((name) => `${name} decides which code runs`)
  const faults: string[] = []
  const program = launchedBy(image, args[0])
  if (program === undefined) faults.push(`${args[0]} is no program of its image`)
  if (args.length > 1 && !program?.takesArguments) faults.push('it is started with arguments')
  for (const name of names) {
    const isNamed = program?.env.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : one === name))
    if (!isNamed) faults.push(`${name} does not get through the launcher`)
    if (isSecretName(name)) faults.push(`${name} is a secret, and belongs into a file`)
  }
  for (const mount of mounts) {
    if (!OPEN_PLACES.test(posix.normalize(mount))) faults.push(`${mount} covers what was measured`)
  }
  return faults
}

/** Members of a manifest that nobody has looked at could start, load or pass anything. */
export function findForeign(value: object, known: readonly string[]): string[] {
  return Object.keys(value).flatMap((name) => (known.includes(name) ? [] : [`${name} is not provided for`]))
}
