import { LAUNCHER, type LaunchedImage } from '../launcher/launchers.ts'
import { isPinned } from './containers.ts'

type Instruction = { name: string; text: string }

export type DockerfileContext = {
  image: LaunchedImage
  /** Whether a path, from the root of the repository, is there and goes to the builder. */
  isSent(path: string): boolean
}

/** What a validator of the syntax does not know: our own rules for images. One sentence for each fault. */
export function checkDockerfile(text: string, { image: own, isSent }: DockerfileContext): string[] {
  const instructions = parseInstructions(text)
  const faults: string[] = []
  // Directives in comments change how, and by whom, the file is read.
  for (const [, directive] of text.matchAll(/^\s*#\s*(syntax|escape)\s*=/gim)) faults.push(`${directive} is not used`)
  const defaults = new Map<string, string>()
  const stages = new Set<string>()
  let final: Instruction[] = []
  for (const instruction of instructions) {
    const { name, text: rest } = instruction
    if (name === 'ARG') {
      const [key = '', value = ''] = rest.split('=', 2)
      defaults.set(key, value)
    }
    if (name === 'ADD') faults.push('ADD is not used: it fetches and unpacks')
    if (name === 'RUN' && /npm (ci|install)/.test(rest)) {
      for (const command of rest.split('&&')) {
        if (!command.includes('--ignore-scripts')) faults.push(`packages may run scripts: ${command.trim()}`)
      }
    }
    if (name === 'COPY' && !rest.startsWith('--from=')) {
      for (const source of rest.split(/\s+/).slice(0, -1)) {
        if (!isSent(source)) faults.push(`COPY: ${source} is not there, or .dockerignore leaves it out`)
      }
    }
    if (name === 'COPY' && rest.startsWith('--from=')) {
      const stage = /^--from=(\S+)/.exec(rest)?.[1] ?? ''
      if (!stages.has(stage)) faults.push(`COPY: there is no stage ${stage}`)
    }
    if (name === 'FROM') {
      const [image = '', , stage] = rest.split(/\s+/)
      const resolved = image.replace(/\$\{(\w+)\}/g, (_, key: string) => defaults.get(key) ?? '')
      if (image !== 'scratch' && !isPinned(resolved)) faults.push(`FROM: ${resolved} is not pinned`)
      if (stage !== undefined) stages.add(stage)
      final = []
    }
    final.push(instruction)
  }
  return [...faults, ...checkFinalStage(final, own)]
}

function checkFinalStage(stage: readonly Instruction[], image: LaunchedImage): string[] {
  const find = (name: string) => stage.findLast((instruction) => instruction.name === name)?.text ?? ''
  const faults: string[] = []
  if (!/^[1-9]\d*:[1-9]\d*$/.test(find('USER'))) faults.push('USER: expected numbers, and not those of root')
  const copies = stage.flatMap(({ name, text }) => (name === 'COPY' ? [text] : []))
  if (find('FROM') !== 'scratch' || copies.join() !== '--from=build /src/out/root/ /') {
    faults.push('the image holds more than what was measured')
  }
  if (stage.some(({ name }) => name === 'RUN')) faults.push('RUN: the last stage has nothing to run')
  const isThat = (text: string, list: readonly string[]) => text === `[${list.map((one) => `"${one}"`).join(', ')}]`
  if (!isThat(find('ENTRYPOINT'), [LAUNCHER])) faults.push('ENTRYPOINT: something runs before the launcher')
  if (!isThat(find('CMD'), [image])) faults.push('CMD: not the program of this image')
  if (!isThat(find('HEALTHCHECK').replace(/^.*?CMD\s+/, ''), [LAUNCHER, 'health'])) {
    faults.push('HEALTHCHECK: missing, or without the launcher')
  }
  for (const name of ['ENV', 'SHELL', 'ONBUILD', 'VOLUME']) {
    if (stage.some((one) => one.name === name)) faults.push(`${name}: the launcher says what is given`)
  }
  for (const label of ['title', 'description', 'licenses', 'version']) {
    if (!find('LABEL').includes(`org.opencontainers.image.${label}=`)) faults.push(`LABEL: no ${label}`)
  }
  return faults
}

function parseInstructions(text: string): Instruction[] {
  return text
    .replace(/^\s*#.*$/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .flatMap((line) => {
      const match = /^(\w+)\s+(.*)$/.exec(line.trim())
      return match === null ? [] : [{ name: (match[1] ?? '').toUpperCase(), text: (match[2] ?? '').trim() }]
    })
}
