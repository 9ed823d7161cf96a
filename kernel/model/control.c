// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/gpu-model: what test programs drive the model with. Reading it gives the event log from the time of opening. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "model.h"

#define ACCESSES_MAX	(1U << 20)
#define LINE_MAX	160

struct control_file {
	struct mutex lock;
	struct list_head programs;
	u64 log_position;
	u32 client;
	u32 next_program;
};

struct control_program {
	struct list_head node;
	struct model_program *program;
	struct model_gpu *gpu;
	u32 id;
	u32 count;
};

static int control_open(struct inode *inode, struct file *file)
{
	struct control_file *control = kzalloc(sizeof(*control), GFP_KERNEL);

	if (!control)
		return -ENOMEM;
	mutex_init(&control->lock);
	INIT_LIST_HEAD(&control->programs);
	file->private_data = control;
	return 0;
}

static int control_release(struct inode *inode, struct file *file)
{
	struct control_file *control = file->private_data;
	struct control_program *handle, *next;

	list_for_each_entry_safe(handle, next, &control->programs, node) {
		kref_put(&handle->program->references, model_program_release);
		kfree(handle);
	}
	if (control->client)
		model_client_gone(control->client);
	kfree(control);
	return 0;
}

static ssize_t control_read(struct file *file, char __user *buffer, size_t size, loff_t *offset)
{
	struct control_file *control = file->private_data;
	ssize_t total = 0;

	mutex_lock(&control->lock);
	while (size - total >= LINE_MAX) {
		char line[LINE_MAX];
		size_t length = model_log_read(line, sizeof(line), &control->log_position);

		if (length == 0)
			break;
		if (copy_to_user(buffer + total, line, length)) {
			total = -EFAULT;
			break;
		}
		total += length;
	}
	mutex_unlock(&control->lock);
	return total;
}

static bool gpu_exists(u32 index)
{
	return index < MODEL_GPUS_MAX && model_gpus[index];
}

/* A descriptor belongs to the client that it first speaks for. */
static int claim(struct control_file *control, u32 client)
{
	if (client == 0 || (control->client && control->client != client))
		return -EPERM;
	control->client = client;
	return 0;
}

static int channel_create(struct control_file *control, void __user *argument)
{
	struct gpu_model_channel request;
	int error;

	if (copy_from_user(&request, argument, sizeof(request)))
		return -EFAULT;
	if (!gpu_exists(request.gpu))
		return -ENODEV;
	error = claim(control, request.client);
	return error ? error : model_user_channel_create(&request);
}

static int memory_create(struct control_file *control, void __user *argument)
{
	struct gpu_model_memory request;
	int error;

	if (copy_from_user(&request, argument, sizeof(request)))
		return -EFAULT;
	if (!gpu_exists(request.gpu))
		return -ENODEV;
	if (!request.vidmem || request.size == 0 || request.size > (64ULL << 20))
		return -EINVAL;
	error = claim(control, request.client);
	return error ? error : model_user_memory_create(&request);
}

static struct model_program *program_create(const struct gpu_model_launch *request)
{
	struct model_program *program = kzalloc(sizeof(*program), GFP_KERNEL);

	if (!program)
		return NULL;
	kref_init(&program->references);
	program->count = request->count;
	program->lanes = request->lanes;
	program->total = (u64)request->count * max(request->repeat, 1U);
	program->accesses = kvmalloc_array(request->count, sizeof(*program->accesses), GFP_KERNEL);
	program->values = kvcalloc(request->count, sizeof(u64), GFP_KERNEL);
	if (program->accesses && program->values &&
	    !copy_from_user(program->accesses, (void __user *)(uintptr_t)request->accesses,
			    request->count * sizeof(*program->accesses)))
		return program;
	model_program_release(&program->references);
	return NULL;
}

static struct model_gpu *program_start(struct model_program *program, u32 client, u32 handle, u32 id)
{
	int i;

	for (i = 0; i < MODEL_GPUS_MAX; i++) {
		struct model_gpu *gpu = model_gpus[i];
		struct model_channel *channel;

		if (!gpu)
			continue;
		mutex_lock(&gpu->lock);
		channel = model_user_channel_find(gpu, client, handle);
		if (channel && channel->retained && !channel->stopped && !channel->dead &&
		    (channel->engine == GPU_MODEL_ENGINE_SM || program->lanes == 1)) {
			program->channel = channel;
			program->id = id;
			channel->programs++;
			gpu->status.programs++;
			kref_get(&program->references);
			list_add_tail(&program->node, &gpu->programs);
			mutex_unlock(&gpu->lock);
			return gpu;
		}
		if (channel)
			model_log(gpu, "launch refused", ((u64)client << 32) | handle, channel->retained, channel->stopped | channel->dead << 1);
		mutex_unlock(&gpu->lock);
	}
	return NULL;
}

static int launch(struct control_file *control, struct gpu_model_launch __user *argument)
{
	struct control_program *handle;
	struct gpu_model_launch request;

	if (copy_from_user(&request, argument, sizeof(request)))
		return -EFAULT;
	if (request.count == 0 || request.count > ACCESSES_MAX || request.lanes == 0 ||
	    request.lanes > GPU_MODEL_LANES_MAX || request.client != control->client)
		return -EINVAL;
	handle = kzalloc(sizeof(*handle), GFP_KERNEL);
	if (!handle)
		return -ENOMEM;
	handle->program = program_create(&request);
	if (!handle->program) {
		kfree(handle);
		return -EFAULT;
	}
	handle->count = request.count;
	handle->id = ++control->next_program;
	handle->gpu = program_start(handle->program, request.client, request.channel, handle->id);
	if (!handle->gpu) {
		kref_put(&handle->program->references, model_program_release);
		kfree(handle);
		return -EIO;
	}
	list_add(&handle->node, &control->programs);
	return put_user(handle->id, &argument->program);
}

static struct control_program *program_find(struct control_file *control, u32 id)
{
	struct control_program *handle;

	list_for_each_entry(handle, &control->programs, node)
		if (handle->id == id)
			return handle;
	return NULL;
}

/* A program that has ended is forgotten once it was waited for. */
static int wait(struct control_file *control, struct gpu_model_wait __user *argument)
{
	struct control_program *handle;
	struct gpu_model_wait request;
	struct model_program *program;
	int error = 0;

	if (copy_from_user(&request, argument, sizeof(request)))
		return -EFAULT;
	handle = program_find(control, request.program);
	if (!handle)
		return -ENOENT;
	program = handle->program;
	wait_event_interruptible_timeout(handle->gpu->changed, READ_ONCE(program->state) != GPU_MODEL_RUNNING,
					 msecs_to_jiffies(request.timeout_ms));
	request.state = READ_ONCE(program->state);
	request.steps = READ_ONCE(program->done);
	request.faults = READ_ONCE(program->faults);
	request.time_count = min(request.time_count, READ_ONCE(program->time_count));
	if (request.times && copy_to_user((void __user *)(uintptr_t)request.times, program->times,
					  request.time_count * sizeof(u64)))
		error = -EFAULT;
	if (request.values && copy_to_user((void __user *)(uintptr_t)request.values, program->values,
					   min(request.count, handle->count) * sizeof(u64)))
		error = -EFAULT;
	if (request.state != GPU_MODEL_RUNNING) {
		list_del(&handle->node);
		kref_put(&program->references, model_program_release);
		kfree(handle);
	}
	if (copy_to_user(argument, &request, sizeof(request)))
		error = -EFAULT;
	return error;
}

static int inject(struct gpu_model_inject __user *argument)
{
	struct gpu_model_inject rule;
	int error;

	if (copy_from_user(&rule, argument, sizeof(rule)))
		return -EFAULT;
	error = model_inject(&rule);
	return !error && put_user(rule.hits, &argument->hits) ? -EFAULT : error;
}

static int duplicate(void __user *argument)
{
	struct gpu_model_duplicate request;

	if (copy_from_user(&request, argument, sizeof(request)))
		return -EFAULT;
	if (!gpu_exists(request.gpu))
		return -ENODEV;
	return model_fault_duplicate(&request) ? 0 : -ENOENT;
}

static int set(void __user *argument)
{
	struct gpu_model_setting setting;

	if (copy_from_user(&setting, argument, sizeof(setting)))
		return -EFAULT;
	setting.name[GPU_MODEL_NAME_LENGTH - 1] = '\0';
	return model_setting_change(setting.name, setting.value);
}

static int status(struct gpu_model_status __user *argument)
{
	struct gpu_model_status result;
	struct model_gpu *gpu;
	u32 index;

	if (get_user(index, &argument->gpu))
		return -EFAULT;
	if (!gpu_exists(index))
		return -ENODEV;
	gpu = model_gpus[index];
	mutex_lock(&gpu->lock);
	result = gpu->status;
	mutex_unlock(&gpu->lock);
	result.gpu = index;
	result.pma_bytes = (u64)gpu->pma.used * MODEL_BIG_PAGE;
	return copy_to_user(argument, &result, sizeof(result)) ? -EFAULT : 0;
}

static long control_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct control_file *control = file->private_data;
	void __user *pointer = (void __user *)argument;
	long result;

	switch (command) {
	case GPU_MODEL_IOC_INJECT:
		return inject(pointer);
	case GPU_MODEL_IOC_DUPLICATE:
		return duplicate(pointer);
	case GPU_MODEL_IOC_SET:
		return set(pointer);
	case GPU_MODEL_IOC_STATUS:
		return status(pointer);
	case GPU_MODEL_IOC_SUSPEND:
		return model_power(true);
	case GPU_MODEL_IOC_RESUME:
		return model_power(false);
	}
	mutex_lock(&control->lock);
	switch (command) {
	case GPU_MODEL_IOC_CHANNEL:
		result = channel_create(control, pointer);
		break;
	case GPU_MODEL_IOC_MEMORY:
		result = memory_create(control, pointer);
		break;
	case GPU_MODEL_IOC_LAUNCH:
		result = launch(control, pointer);
		break;
	case GPU_MODEL_IOC_WAIT:
		result = wait(control, pointer);
		break;
	default:
		result = -ENOTTY;
	}
	mutex_unlock(&control->lock);
	return result;
}

static const struct file_operations control_operations = {
	.owner = THIS_MODULE,
	.open = control_open,
	.release = control_release,
	.read = control_read,
	.unlocked_ioctl = control_ioctl,
};

static struct miscdevice control_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gpu-model",
	.fops = &control_operations,
};

int model_control_init(void)
{
	return misc_register(&control_device);
}

void model_control_exit(void)
{
	misc_deregister(&control_device);
}
